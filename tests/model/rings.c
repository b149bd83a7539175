/* SPDX-License-Identifier: MIT */
#include "tests/model/rings.h"

#include <errno.h>
#include <liburing.h>
#include <stdio.h>
#include <string.h>

#include "tests/model/files.h"
#include "tests/model/model.h"
#include "tests/model/reduce/reduce.h"

#include "runtime/base/uapi.h"

/* Where a ring's memory is: as it is laid out while the scenario is set up. */
static struct {
	uint32_t *sq_head, *sq_tail, *sq_flags, *cq_head, *cq_tail;
	struct io_uring_sqe *sqes;
	struct io_uring_cqe *cqes;
	uint32_t sq_mask, cq_mask;
} memory[RINGS];
static int rings;

int ring_make(unsigned entries, struct io_uring *ring, struct io_uring_params *params)
{
	uint32_t *word = model_map(4096), *array = model_map(entries * sizeof(*array));
	const int file = new_file(FILE_RING);

	if (rings == RINGS)
		model_outside("more rings than model.h has room for");
	M.file[file].ring = rings;
	memory[rings].sq_head = &word[0];
	memory[rings].sq_tail = &word[16];
	memory[rings].sq_flags = &word[32];
	memory[rings].cq_head = &word[48];
	memory[rings].cq_tail = &word[64];
	memory[rings].sqes = model_map(entries * sizeof(struct io_uring_sqe));
	memory[rings].cqes = model_map(params->cq_entries * sizeof(struct io_uring_cqe));
	memory[rings].sq_mask = entries - 1;
	memory[rings].cq_mask = params->cq_entries - 1;
	params->sq_entries = entries;
	params->features = IORING_FEAT_NODROP | IORING_FEAT_EXT_ARG | IORING_FEAT_FAST_POLL |
			   IORING_FEAT_SUBMIT_STABLE | IORING_FEAT_SINGLE_MMAP | IORING_FEAT_RW_CUR_POS;
	memset(ring, 0, sizeof(*ring));
	ring->sq.khead = memory[rings].sq_head;
	ring->sq.ktail = memory[rings].sq_tail;
	ring->sq.kflags = memory[rings].sq_flags;
	ring->sq.kdropped = &word[80];
	ring->sq.array = array;
	ring->sq.sqes = memory[rings].sqes;
	ring->sq.ring_mask = memory[rings].sq_mask;
	ring->sq.ring_entries = entries;
	ring->cq.khead = memory[rings].cq_head;
	ring->cq.ktail = memory[rings].cq_tail;
	ring->cq.koverflow = &word[96];
	ring->cq.cqes = memory[rings].cqes;
	ring->cq.ring_mask = memory[rings].cq_mask;
	ring->cq.ring_entries = params->cq_entries;
	ring->flags = params->flags;
	ring->features = params->features;
	ring->ring_fd = ring->enter_ring_fd = (int)new_fd(file, 3);
	rings++;
	return 0;
}

/* The program writes this word, and the kernel reads it. */
static uint32_t look(const uint32_t *word)
{
	model_note_read(word, sizeof(*word));
	return *word;
}

bool ring_has_completions(int i)
{
	return *memory[i].cq_tail != look(memory[i].cq_head);
}

static void post(int ring, uint64_t user_data, int result, uint32_t flags)
{
	const uint32_t tail = *memory[ring].cq_tail, next = tail + 1;
	const struct io_uring_cqe cqe = { .user_data = user_data, .res = result, .flags = flags };

	if (tail - look(memory[ring].cq_head) > memory[ring].cq_mask)
		model_outside("a full completion queue");
	model_put(&memory[ring].cqes[tail & memory[ring].cq_mask], &cqe, 16);
	model_put(memory[ring].cq_tail, &next, sizeof(next));
	for (int i = 0; i < M.kthreads; i++)
		if (M.kt[i].state == KT_BLOCKED && M.kt[i].ring == ring + 1) {
			M.kt[i].ring = 0;
			M.kt[i].state = KT_RUNNABLE;
		}
}

static void set_flag(int ring, uint32_t flag, bool on)
{
	const uint32_t flags = on ? *memory[ring].sq_flags | flag : *memory[ring].sq_flags & ~flag;

	if (flags != *memory[ring].sq_flags)
		model_put(memory[ring].sq_flags, &flags, sizeof(flags));
}

static void poll_reports(struct poll *p)
{
	const bool goes_on = p->multishot && !M.multishot_ends;

	p->reported = false;
	if (p->cancelled) {
		post(p->ring, p->user_data, -ECANCELED, 0);
		p->user_data = 0;
		return;
	}
	/* Somebody has read the eventfd meanwhile: the poll stays. */
	if (!file_is_ready(&M.file[p->file]))
		return;
	if (p->multishot)
		M.multishot_ends = false;
	post(p->ring, p->user_data, POLLIN, goes_on ? IORING_CQE_F_MORE : 0);
	if (!goes_on)
		p->user_data = 0;
}

uint32_t rings_reports(int kt)
{
	uint32_t set = 0;

	for (int i = 0; i < POLLS; i++)
		if (M.poll[i].user_data && M.poll[i].reported && (kt < 0 || M.poll[i].kt == kt))
			set |= 1u << i;
	return set;
}

static int reported_by(int kt, struct poll **ret_polls)
{
	int n = 0;

	for (int i = 0; i < POLLS; i++)
		if (M.poll[i].user_data && M.poll[i].reported && M.poll[i].kt == kt)
			ret_polls[n++] = &M.poll[i];
	return n;
}

/* task_work_add() promises no order. */
static void task_work_of(int kt)
{
	struct poll *polls[POLLS];
	bool any = false;
	int n;

	while ((n = reported_by(kt, polls))) {
		reduce_use(OBJECT_EVENTS, true);
		const int which = schedule_choose(n, EVEN);
		struct poll *p = polls[which];

		if (which)
			trace_say("%s: reports to its rings in another order", M.kt[kt].name);
		set_flag(p->ring, IORING_SQ_TASKRUN, false);
		poll_reports(p);
		any = true;
	}
	if (any)
		files_changed();
}

void rings_task_work(void)
{
	task_work_of(M.current);
}

void rings_goes_on(void)
{
	struct poll *polls[POLLS];

	/* Back in the program: it may have run on another CPU all the time, where nothing interrupts it (COOP_TASKRUN). */
	if (!M.kt[M.current].in_kernel && reported_by(M.current, polls) && schedule_choose(2, OFTEN)) {
		trace_say("%s: what it is to report to its rings waits for its next call", M.kt[M.current].name);
		return;
	}
	task_work_of(M.current);
}

/* It reports when it is in the kernel: if it sleeps there at once, but a wait for completions may take it some time. */
static void let_report(struct poll *p)
{
	struct kthread *kt = &M.kt[p->kt];

	p->reported = true;
	if (kt->state == KT_BLOCKED && kt->ring && schedule_choose(2, OFTEN)) {
		trace_say("%s: is woken to report to its rings", kt->name);
		kt->ring = 0;
		kt->state = KT_RUNNABLE;
	}
	if (kt->state == KT_BLOCKED)
		task_work_of(p->kt);
	else
		set_flag(p->ring, IORING_SQ_TASKRUN, true);
}

void rings_note_event(int file)
{
	for (int i = 0; i < POLLS; i++) {
		struct poll *p = &M.poll[i];

		if (p->user_data && !p->reported && p->file == file)
			let_report(p);
	}
}

static int begin_poll(int ring, const struct io_uring_sqe *sqe)
{
	struct poll *p = M.poll;

	if (!file_of(sqe->fd))
		return -EBADF;
	if (file_of(sqe->fd)->kind != FILE_EVENT || sqe->poll32_events != POLLIN)
		model_outside("POLL_ADD, except of an eventfd that is read");
	while (p < M.poll + POLLS && p->user_data)
		p++;
	if (p == M.poll + POLLS)
		model_outside("more polls than model.h has room for");
	*p = (struct poll){ .user_data = sqe->user_data, .ring = ring, .kt = M.current,
			    .file = M.fd_of[sqe->fd] - 1, .multishot = sqe->len & IORING_POLL_ADD_MULTI };
	if (!sqe->user_data)
		model_outside("a poll without user_data");
	if (file_is_ready(file_of(sqe->fd)))
		poll_reports(p);
	return 0;
}

/* A cancelled poll ends by the canceller (older Linux), or is reported by its submitter like one that is ready. */
static bool may_report_later(const struct poll *p)
{
	const struct kthread *kt = &M.kt[p->kt];

	return kt->state == KT_RUNNABLE || (kt->state == KT_BLOCKED && kt->ring);
}

/* Polls with this user_data, or all: one, if not all are meant.  A report that is on its way: EALREADY. */
static int cancel(int ring, uint64_t user_data, bool any, bool all)
{
	int n = 0;

	for (int i = 0; i < POLLS; i++) {
		struct poll *p = &M.poll[i];

		if (!p->user_data || p->ring != ring || (!any && p->user_data != user_data))
			continue;
		n++;
		if (p->reported && !all)
			return -EALREADY;
		if (p->reported)
			continue;
		if (may_report_later(p) && schedule_choose(2, OFTEN)) {
			trace_say("%s: is to report that its poll is cancelled", M.kt[p->kt].name);
			p->cancelled = true;
			let_report(p);
		} else {
			post(ring, p->user_data, -ECANCELED, 0);
			p->user_data = 0;
		}
		if (!all)
			break;
	}
	return n ? n : -ENOENT;
}

static void issue(int ring, const struct io_uring_sqe *sqe)
{
	int result;
	char text[32];

	reduce_read(sqe, sizeof(*sqe));
	switch (sqe->opcode) {
	case IORING_OP_NOP:
		result = 0;
		break;
	case IORING_OP_POLL_ADD:
		result = begin_poll(ring, sqe);
		if (!result)
			return;
		break;
	case IORING_OP_POLL_REMOVE:
		result = cancel(ring, sqe->addr, false, false);
		result = result > 0 ? 0 : result;
		break;
	case IORING_OP_ASYNC_CANCEL:
		result = cancel(ring, sqe->addr, false, true);
		break;
	default:
		snprintf(text, sizeof(text), "io_uring's opcode %d", sqe->opcode);
		model_outside(text);
	}
	post(ring, sqe->user_data, result, 0);
}

static uint32_t submit(int ring, uint32_t most)
{
	uint32_t head = *memory[ring].sq_head, n;
	const uint32_t queued = look(memory[ring].sq_tail) - head;

	for (n = 0; n < most && n < queued; n++, head++)
		issue(ring, &memory[ring].sqes[head & memory[ring].sq_mask]);
	if (n)
		model_put(memory[ring].sq_head, &head, sizeof(head));
	return n;
}

static long wait_for(int ring, uint32_t least, uint64_t deadline)
{
	long err = 0;

	rings_task_work();
	while (*memory[ring].cq_tail - look(memory[ring].cq_head) < least) {
		if (err == -EINTR)
			return err;
		if (deadline <= M.now)
			return -ETIME;
		if (sleep_is_interrupted()) {
			err = -EINTR;
			continue;
		}
		M.kt[M.current].ring = ring + 1;
		err = sleep_in_kernel(deadline);
		rings_task_work();
	}
	return 0;
}

long ring_enter(int fd, uint32_t to_submit, uint32_t least, uint32_t flags, const void *arg)
{
	const struct io_uring_getevents_arg *ext = flags & IORING_ENTER_EXT_ARG ? arg : NULL;
	const struct file *f = file_of(fd);
	long submitted, err = 0;

	if (M.rings_forbidden)
		return -EPERM;
	/* The filter has let it pass; it takes the ring's lock later, after whoever has that. */
	if (M.ring_lock_held) {
		M.ring_lock_held = false;
		M.ring_lock_awaited = true;
		schedule_give_way();
	} else if (exploring) {
		step++;
		schedule_point();
	}
	if (!f || f->kind != FILE_RING)
		return -EBADF;
	if (flags & ~(IORING_ENTER_GETEVENTS | IORING_ENTER_EXT_ARG))
		return -EINVAL;
	/* No memory for a request: none is submitted. */
	if (to_submit)
		M.kt[M.current].refused = look(memory[f->ring].sq_tail) != *memory[f->ring].sq_head &&
					  schedule_choose(2, RARE);
	if (to_submit && M.kt[M.current].refused) {
		trace_say("%s: io_uring_enter: no memory", M.kt[M.current].name);
		return -EAGAIN;
	}
	submitted = submit(f->ring, to_submit);
	files_changed();
	if (flags & IORING_ENTER_GETEVENTS)
		err = wait_for(f->ring, least, ext && ext->ts ? deadline_of((void *)(uintptr_t)ext->ts) : FOREVER);
	rings_task_work();
	return submitted ? submitted : err;
}

long ring_register(int fd, unsigned operation, const void *arg)
{
	const struct fz_uapi_sync_cancel *c = arg;
	const struct file *f = file_of(fd);
	long n;

	if (!f || f->kind != FILE_RING)
		return -EBADF;
	switch (operation) {
	case IORING_UNREGISTER_EVENTFD:
		return -ENXIO;
	case FZ_UAPI_REGISTER_SYNC_CANCEL:
		n = cancel(f->ring, c->addr, c->flags & FZ_UAPI_ASYNC_CANCEL_ANY, true);
		rings_task_work();
		files_changed();
		return n;
	default:
		model_outside("io_uring_register with another operation");
	}
}

void model_forbid_rings(void)
{
	reduce_use(OBJECT_EVENTS, true);
	M.rings_forbidden = true;
}

void model_hold_ring_lock(void)
{
	reduce_use(OBJECT_EVENTS, true);
	M.ring_lock_held = true;
}

bool model_ring_lock_is_awaited(void)
{
	reduce_use(OBJECT_EVENTS, false);
	return M.ring_lock_awaited;
}

void model_end_multishot(void)
{
	reduce_use(OBJECT_EVENTS, true);
	M.multishot_ends = true;
}
