/* SPDX-License-Identifier: MIT */
#include "tests/model/files.h"

#include <errno.h>
#include <fcntl.h>

#include "tests/model/model.h"
#include "tests/model/rings.h"

int new_file(int kind)
{
	for (int i = 0; i < FILES; i++)
		if (!M.file[i].kind) {
			M.file[i] = (struct file){ .kind = kind };
			return i;
		}
	model_outside("more open files than model.h has room for");
}

long new_fd(int file, int from)
{
	for (int fd = from; fd < FDS; fd++)
		if (!M.fd_of[fd]) {
			M.fd_of[fd] = file + 1;
			return fd;
		}
	return -EMFILE;
}

struct file *file_of(int fd)
{
	return fd >= 0 && fd < FDS && M.fd_of[fd] ? &M.file[M.fd_of[fd] - 1] : NULL;
}

bool file_is_ready(const struct file *f)
{
	if (f->kind == FILE_EVENT)
		return f->count;
	if (f->kind == FILE_RING)
		return ring_has_completions(f->ring);
	for (int i = 0; i < f->watches; i++)
		if (file_is_ready(&M.file[f->watched[i].file]))
			return true;
	return false;
}

void files_changed(void)
{
	for (int i = 0; i < M.kthreads; i++) {
		const struct file *f = file_of(M.kt[i].fd);

		if (M.kt[i].state == KT_BLOCKED && M.kt[i].fd >= 0 && f && file_is_ready(f)) {
			M.kt[i].fd = -1;
			M.kt[i].state = KT_RUNNABLE;
		}
	}
}

long epoll_wait_for(int fd, struct epoll_event *events, long most, uint64_t deadline)
{
	struct file *f = file_of(fd);
	struct epoll_event found;
	long n = 0, err = 0;

	if (!f)
		return -EBADF;
	if (f->kind != FILE_EPOLL || most <= 0)
		return -EINVAL;
	/* Woken, it may find that another kthread has read the eventfd: it sleeps again. */
	while (!file_is_ready(f) && deadline > M.now && err != -EINTR) {
		if (sleep_is_interrupted()) {
			err = -EINTR;
			continue;
		}
		M.kt[M.current].fd = fd;
		err = sleep_in_kernel(deadline);
	}
	for (int i = 0; i < f->watches && n < most; i++)
		if (file_is_ready(&M.file[f->watched[i].file])) {
			found = (struct epoll_event){ .events = EPOLLIN,
						      .data.u64 = f->watched[i].data };
			model_put(&events[n++], &found, sizeof(found));
		}
	return n ? n : err;
}

long epoll_control(int fd, int operation, int watched, const struct epoll_event *event)
{
	struct file *f = file_of(fd);

	if (!f || !file_of(watched))
		return -EBADF;
	if (operation != EPOLL_CTL_ADD || f->watches == 4)
		model_outside("epoll_ctl, except to add an eventfd");
	f->watched[f->watches].file = M.fd_of[watched] - 1;
	f->watched[f->watches].events = event->events;
	f->watched[f->watches++].data = event->data.u64;
	return 0;
}

long event_transfer(int fd, uint64_t *count, bool writes)
{
	struct file *f = file_of(fd);

	if (!f || f->kind != FILE_EVENT)
		return -EBADF;
	if (writes) {
		f->count += *count;
		rings_note_event(M.fd_of[fd] - 1);
		files_changed();
		return 8;
	}
	if (!f->count)
		return -EAGAIN;
	model_put(count, &f->count, 8);
	f->count = 0;
	return 8;
}

long poll_for(struct pollfd *fds, long n, const struct timespec *timeout)
{
	uint64_t deadline = deadline_of(timeout);
	long ready = 0;

	for (;;) {
		for (long i = 0; i < n; i++) {
			const struct file *f = file_of(fds[i].fd);
			short revents = f ? (file_is_ready(f) ? POLLIN : 0) : POLLNVAL;

			model_put(&fds[i].revents, &revents, sizeof(revents));
			ready += revents != 0;
		}
		if (ready || deadline <= M.now)
			return ready;
		if (n != 1)
			model_outside("a ppoll of several descriptors that waits");
		M.kt[M.current].fd = fds[0].fd;
		if (sleep_in_kernel(deadline) == -EINTR && signals_interrupt())
			return -EINTR;
	}
}

long fd_control(int fd, int command, long arg)
{
	if (!file_of(fd))
		return -EBADF;
	switch (command) {
	case F_DUPFD_CLOEXEC:
	case F_DUPFD:
		return new_fd(M.fd_of[fd] - 1, (int)arg);
	case F_GETFD:
		return FD_CLOEXEC;
	case F_SETFD:
		return 0;
	default:
		model_outside("fcntl with another command");
	}
}
