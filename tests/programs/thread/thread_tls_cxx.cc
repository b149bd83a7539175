// SPDX-License-Identifier: MIT
// tests/programs/thread/thread_tls_cxx.cc - thread_local objects with constructors and destructors.
#include "check.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

static std::atomic<int> made{0}, unmade{0}, keys{0};
static pthread_key_t key;
static std::string order;

struct counted {
	int value = 5;
	std::string name = "a name that is too long for the small-string buffer";
	counted() { made++; }
	~counted()
	{
		CHECK(value == 5 || value % 100 == 17);
		/* May block, like any other code. */
		usleep(100);
		unmade++;
	}
};

static thread_local counted object;
static thread_local int plain = 3;
static thread_local std::vector<int> numbers{1, 2, 3};

struct noting {
	const char *what;
	bool armed = false;
	~noting()
	{
		if (armed)
			order += what;
	}
};

static thread_local noting one{"1"}, two{"2"};

static void key_gone(void *)
{
	keys++;
	if (one.armed)
		order += "k";
}

static void body(int id)
{
	CHECK_INT(object.value, 5);
	CHECK_INT(plain, 3);
	CHECK_INT(numbers.size(), 3);
	object.value = id * 100 + 17;
	plain = id;
	numbers.push_back(id);
	CHECK_OK(pthread_setspecific(key, &object));
	usleep(200);
	CHECK_INT(object.value, id * 100 + 17);
	CHECK_INT(plain, id);
	CHECK_INT(numbers.back(), id);
}

int main()
{
	CHECK_OK(pthread_key_create(&key, key_gone));
	for (int i = 0; i < 100; i++)
		std::thread(body, i).join();
	CHECK_INT(made, 100);
	CHECK_INT(unmade, 100);
	CHECK_INT(keys, 100);

	std::vector<std::thread> all;
	for (int i = 0; i < 50; i++)
		all.emplace_back(body, i);
	for (auto &t : all)
		t.join();
	CHECK_INT(made, 150);
	CHECK_INT(unmade, 150);
	CHECK_INT(keys, 150);

	/* One that never touches any of them makes none. */
	std::thread([] { keys += 0; }).join();
	CHECK_INT(made, 150);

	/* Destructors run in reverse, and before those of the keys. */
	std::thread([] {
		one.armed = two.armed = true;
		CHECK_OK(pthread_setspecific(key, &key));
	}).join();
	printf("order %s\n", order.c_str());
	/* By pthread_exit from deep inside as well. */
	pthread_t t = start([](void *) -> void * {
		object.value = 17;
		pthread_exit(nullptr);
	}, nullptr);
	finish(t);
	CHECK_INT(unmade, 152);
	return success();
}
