/* SPDX-License-Identifier: MIT */
#ifndef FZ_MODEL_FILES_H
#define FZ_MODEL_FILES_H

/*
 * tests/model/files.h - the model's descriptors: eventfds, and epoll instances that watch them.
 */

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <time.h>

int new_file(int kind);
long new_fd(int file, int from);
struct file *file_of(int fd);
bool file_is_ready(const struct file *f);
/* Something has changed: who polls or waits for events looks again. */
void files_changed(void);
long epoll_wait_for(int fd, struct epoll_event *events, long most, uint64_t deadline);
long epoll_control(int fd, int operation, int watched, const struct epoll_event *event);
long event_transfer(int fd, uint64_t *count, bool writes);
long poll_for(struct pollfd *fds, long n, const struct timespec *timeout);
long fd_control(int fd, int command, long arg);

/* kernel.c: the running kthread sleeps, -EINTR: until a signal came; what a relative timeout means. */
long sleep_in_kernel(uint64_t deadline);
/*
 * Does a stop, and the end of it, interrupt the sleep that it is about to begin, as signal(7) says of epoll_wait?  No
 * handler runs.  A choice of the scheduler: at once, or when others have run, who may have ended the wait.
 */
bool sleep_is_interrupted(void);
uint64_t deadline_of(const struct timespec *ts);

#endif
