/* SPDX-License-Identifier: MIT */
/* tests/programs/sync/cond_stress.c - bounded queue, ping-pong, a crowd that turns round. */
#include "check.h"

#define PRODUCERS 6
#define CONSUMERS 5
#define ITEMS 3000
#define ROOM 7

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static pthread_cond_t drained = PTHREAD_COND_INITIALIZER;
static long queue[ROOM];
static unsigned head, tail;

static void *produce(void *arg)
{
	for (long i = 1; i <= ITEMS; i++) {
		pthread_mutex_lock(&lock);
		while (tail - head == ROOM)
			pthread_cond_wait(&drained, &lock);
		queue[tail++ % ROOM] = i + (intptr_t)arg;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void *consume(void *arg)
{
	long sum = 0;

	for (;;) {
		long item;

		pthread_mutex_lock(&lock);
		while (tail == head)
			pthread_cond_wait(&filled, &lock);
		item = queue[head++ % ROOM];
		pthread_mutex_unlock(&lock);
		pthread_cond_signal(&drained);
		if (!item)
			break;
		sum += item;
	}
	*(long *)arg = sum;
	return NULL;
}

static void bounded_queue(void)
{
	pthread_t p[PRODUCERS], c[CONSUMERS];
	long sum[CONSUMERS], total = 0, want = 0;

	for (int i = 0; i < CONSUMERS; i++)
		c[i] = start(consume, &sum[i]);
	for (intptr_t i = 0; i < PRODUCERS; i++) {
		p[i] = start(produce, (void *)(i * 100000));
		want += (long)ITEMS * (ITEMS + 1) / 2 + (long)i * 100000 * ITEMS;
	}
	for (int i = 0; i < PRODUCERS; i++)
		finish(p[i]);
	for (int i = 0; i < CONSUMERS; i++) {
		pthread_mutex_lock(&lock);
		while (tail - head == ROOM)
			pthread_cond_wait(&drained, &lock);
		queue[tail++ % ROOM] = 0;
		pthread_cond_signal(&filled);
		pthread_mutex_unlock(&lock);
	}
	for (int i = 0; i < CONSUMERS; i++) {
		finish(c[i]);
		total += sum[i];
	}
	CHECK_INT(total, want);
	printf("queue %ld\n", total);
}

struct pair {
	pthread_mutex_t lock;
	pthread_cond_t cond[2];
	int turn;
	long count;
};

struct side {
	struct pair *pair;
	int me;
};

static void *ping_pong(void *arg)
{
	struct side *side = arg;
	struct pair *pair = side->pair;

	pthread_mutex_lock(&pair->lock);
	for (int i = 0; i < 2000; i++) {
		while (pair->turn != side->me)
			pthread_cond_wait(&pair->cond[side->me], &pair->lock);
		pair->turn = !side->me;
		pair->count++;
		pthread_cond_signal(&pair->cond[!side->me]);
	}
	pthread_mutex_unlock(&pair->lock);
	return NULL;
}

static void pairs(void)
{
	struct pair pair[4] = { 0 };
	struct side side[8];
	pthread_t t[8];

	for (int i = 0; i < 4; i++) {
		pthread_mutex_init(&pair[i].lock, NULL);
		pthread_cond_init(&pair[i].cond[0], NULL);
		pthread_cond_init(&pair[i].cond[1], NULL);
	}
	for (int i = 0; i < 8; i++) {
		side[i] = (struct side){ &pair[i / 2], i % 2 };
		t[i] = start(ping_pong, &side[i]);
	}
	for (int i = 0; i < 8; i++)
		finish(t[i]);
	for (int i = 0; i < 4; i++)
		CHECK_INT(pair[i].count, 4000);
	puts("ping-pong");
}

static int arrived, generation;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;

static void *crowd(void *arg)
{
	for (int i = 0; i < 200; i++) {
		int mine;

		pthread_mutex_lock(&lock);
		mine = generation;
		CHECK_INT(mine, i);
		if (++arrived == 12) {
			arrived = 0;
			generation++;
			pthread_cond_broadcast(&turned);
		} else {
			while (generation == mine)
				pthread_cond_wait(&turned, &lock);
		}
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

int main(void)
{
	pthread_t t[12];

	bounded_queue();
	pairs();
	for (int i = 0; i < 12; i++)
		t[i] = start(crowd, NULL);
	for (int i = 0; i < 12; i++)
		finish(t[i]);
	CHECK_INT(generation, 200);
	puts("crowd");
	return success();
}
