/* SPDX-License-Identifier: MIT */
/*
 * tests/targets/places.cc - a thread in each of many places where a thread can wait: whatever waits
 * in the kernel, in libc, in C++; in handlers, destructors, callbacks, inlined functions and code
 * without debug information.
 *
 *	places		prints "ready" when all threads have been made, and goes on until killed
 */
#include <cerrno>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <functional>
#include <linux/futex.h>
#include <mutex>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <thread>
#include <threads.h>
#include <unistd.h>

#define PLACE(name) static void name()
/* A call in the last place of a function would leave no frame. */
#define STAY __asm__ volatile("")

static const timespec long_time = { 100000, 0 };
static int empty_pipe[2], full_pipe[2], pair[2], full_pair[2], listener;
static char page[65536];

static timespec deadline(clockid_t clock)
{
	timespec ts;

	clock_gettime(clock, &ts);
	ts.tv_sec += 100000;
	return ts;
}

/* ---- time */

PLACE(in_sleep) { sleep(100000); STAY; }
PLACE(in_usleep) { usleep(4000000000u); STAY; }
PLACE(in_nanosleep) { nanosleep(&long_time, nullptr); STAY; }
PLACE(in_clock_nanosleep)
{
	const timespec ts = deadline(CLOCK_MONOTONIC);

	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, nullptr);
	STAY;
}
PLACE(in_pause) { pause(); STAY; }
PLACE(in_thrd_sleep) { thrd_sleep(&long_time, nullptr); STAY; }

/* ---- descriptors */

static void reads(int fd)
{
	char bytes[8];

	if (read(fd, bytes, sizeof(bytes)) < 0)
		abort();
}
PLACE(in_read_pipe) { reads(empty_pipe[0]); STAY; }
PLACE(in_read_socket) { reads(pair[0]); STAY; }
PLACE(in_read_eventfd) { reads(eventfd(0, 0)); STAY; }
PLACE(in_read_timerfd) { reads(timerfd_create(CLOCK_MONOTONIC, 0)); STAY; }
PLACE(in_readv)
{
	iovec part = { page, 1 };

	if (readv(empty_pipe[0], &part, 1) < 0)
		abort();
}
PLACE(in_recv) { recv(pair[0], page, 1, 0); STAY; }
PLACE(in_recvfrom) { recvfrom(pair[0], page, 1, 0, nullptr, nullptr); STAY; }
PLACE(in_recvmsg)
{
	iovec part = { page, 1 };
	msghdr message = {};

	message.msg_iov = &part;
	message.msg_iovlen = 1;
	recvmsg(pair[0], &message, 0);
	STAY;
}
PLACE(in_accept) { accept(listener, nullptr, nullptr); STAY; }
PLACE(in_accept4) { accept4(listener, nullptr, nullptr, SOCK_CLOEXEC); STAY; }
PLACE(in_write)
{
	if (write(full_pipe[1], page, sizeof(page)) < 0)
		abort();
}
PLACE(in_send) { send(full_pair[0], page, sizeof(page), 0); STAY; }
PLACE(in_poll)
{
	pollfd fds[] = { { pair[0], POLLIN, 0 }, { empty_pipe[0], POLLIN, 0 } };

	poll(fds, 2, -1);
	STAY;
}
PLACE(in_ppoll)
{
	pollfd fd = { empty_pipe[0], POLLIN, 0 };

	ppoll(&fd, 1, nullptr, nullptr);
	STAY;
}
PLACE(in_select)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(empty_pipe[0], &set);
	select(empty_pipe[0] + 1, &set, nullptr, nullptr, nullptr);
	STAY;
}
PLACE(in_pselect)
{
	fd_set set;

	FD_ZERO(&set);
	FD_SET(empty_pipe[0], &set);
	pselect(empty_pipe[0] + 1, &set, nullptr, nullptr, nullptr, nullptr);
	STAY;
}
__attribute__((noinline)) static int epoll_of_pipe()
{
	epoll_event event = {};
	const int fd = epoll_create1(0);

	event.events = EPOLLIN;
	epoll_ctl(fd, EPOLL_CTL_ADD, empty_pipe[0], &event);
	return fd;
}
PLACE(in_epoll_wait)
{
	epoll_event event;

	epoll_wait(epoll_of_pipe(), &event, 1, -1);
	STAY;
}
PLACE(in_epoll_pwait)
{
	epoll_event event;

	epoll_pwait(epoll_of_pipe(), &event, 1, -1, nullptr);
	STAY;
}
PLACE(in_flock)
{
	char name[] = "/tmp/placesXXXXXX";
	const int first = mkstemp(name), second = open(name, O_RDWR);

	unlink(name);
	flock(first, LOCK_EX);
	flock(second, LOCK_EX);
	STAY;
}
PLACE(in_open_fifo)
{
	char name[] = "/tmp/placesXXXXXX";

	close(mkstemp(name));
	unlink(name);
	mkfifo(name, 0600);
	if (open(name, O_RDONLY) < 0)
		abort();
}
PLACE(in_waitpid)
{
	int alive[2];
	pid_t child;

	if (pipe(alive))
		abort();
	child = fork();
	if (child == 0) {
		/* Reads the end of the file when its parent is gone. */
		close(alive[1]);
		_exit((int)read(alive[0], page, 1));
	}
	waitpid(child, nullptr, 0);
	STAY;
}
PLACE(in_futex)
{
	static int word;

	syscall(SYS_futex, &word, FUTEX_WAIT, 0, nullptr, nullptr, 0);
	STAY;
}

/* ---- locks */

static pthread_mutex_t taken = PTHREAD_MUTEX_INITIALIZER, mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_barrier_t barrier;
static sem_t semaphore;
static pthread_t sleeper;

PLACE(in_mutex_lock) { pthread_mutex_lock(&taken); STAY; }
PLACE(in_mutex_timedlock)
{
	const timespec ts = deadline(CLOCK_REALTIME);

	pthread_mutex_timedlock(&taken, &ts);
	STAY;
}
PLACE(in_cond_wait)
{
	pthread_mutex_lock(&mutex);
	pthread_cond_wait(&cond, &mutex);
	STAY;
}
PLACE(in_cond_timedwait)
{
	const timespec ts = deadline(CLOCK_REALTIME);

	pthread_mutex_lock(&mutex);
	pthread_cond_timedwait(&cond, &mutex, &ts);
	STAY;
}
PLACE(in_rdlock) { pthread_rwlock_rdlock(&rwlock); STAY; }
PLACE(in_wrlock) { pthread_rwlock_wrlock(&rwlock); STAY; }
PLACE(in_sem_wait) { sem_wait(&semaphore); STAY; }
PLACE(in_sem_timedwait)
{
	const timespec ts = deadline(CLOCK_REALTIME);

	sem_timedwait(&semaphore, &ts);
	STAY;
}
PLACE(in_barrier) { pthread_barrier_wait(&barrier); STAY; }
PLACE(in_join) { pthread_join(sleeper, nullptr); STAY; }
PLACE(in_mtx_lock)
{
	static mtx_t lock;

	mtx_init(&lock, mtx_plain);
	mtx_lock(&lock);
	mtx_lock(&lock);
	STAY;
}
PLACE(in_cnd_wait)
{
	static cnd_t condition;
	static mtx_t lock;

	cnd_init(&condition);
	mtx_init(&lock, mtx_plain);
	mtx_lock(&lock);
	cnd_wait(&condition, &lock);
	STAY;
}

/* ---- signals */

PLACE(in_sigwait)
{
	sigset_t set;
	int number;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwait(&set, &number);
	STAY;
}
PLACE(in_sigwaitinfo)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigwaitinfo(&set, nullptr);
	STAY;
}
PLACE(in_sigsuspend)
{
	sigset_t set;

	sigemptyset(&set);
	sigsuspend(&set);
	STAY;
}
static void handler(int) { sleep(100000); STAY; }
PLACE(in_handler) { raise(SIGUSR1); STAY; }
PLACE(in_handler_of_kill) { pthread_kill(pthread_self(), SIGUSR1); STAY; }

/* ---- libc calls back, or waits inside */

PLACE(in_fgets)
{
	char line[80];

	if (!fgets(line, sizeof(line), fdopen(dup(empty_pipe[0]), "r")))
		abort();
}
PLACE(in_getc) { getc(fdopen(dup(empty_pipe[0]), "r")); STAY; }
PLACE(in_fread)
{
	if (!fread(page, 1, 10, fdopen(dup(empty_pipe[0]), "r")))
		abort();
}
PLACE(in_getline)
{
	char *line = nullptr;
	size_t size = 0;

	if (getline(&line, &size, fdopen(dup(empty_pipe[0]), "r")) < 0)
		abort();
}
PLACE(in_fscanf)
{
	int number;

	if (fscanf(fdopen(dup(empty_pipe[0]), "r"), "%d", &number) < 0)
		abort();
}
PLACE(in_fflush)
{
	FILE *file = fdopen(dup(full_pipe[1]), "w");

	fputs("text", file);
	fflush(file);
	STAY;
}
static int compare(const void *, const void *)
{
	sleep(100000);
	return 0;
}
PLACE(in_qsort)
{
	int numbers[] = { 2, 1 };

	qsort(numbers, 2, sizeof(int), compare);
	STAY;
}
PLACE(in_bsearch) { bsearch(page, page, 1, 1, compare); STAY; }
static void once_only() { sleep(100000); STAY; }
PLACE(in_once)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, once_only);
	STAY;
}
static void at_end(void *) { sleep(100000); STAY; }
PLACE(in_key_destructor)
{
	pthread_key_t key;

	pthread_key_create(&key, at_end);
	pthread_setspecific(key, page);
}
PLACE(in_cleanup)
{
	pthread_cleanup_push(at_end, nullptr);
	pthread_exit(nullptr);
	pthread_cleanup_pop(0);
}

/* ---- C++ */

struct Holder {
	~Holder() { sleep(100000); STAY; }
};
PLACE(in_destructor) { Holder one; STAY; }
PLACE(in_thread_local_destructor)
{
	static thread_local Holder one;

	(void)&one;
}
PLACE(in_unwinding)
{
	try {
		Holder one;

		throw 1;
	} catch (int) {
	}
}
PLACE(in_catch)
{
	try {
		throw 1;
	} catch (int) {
		sleep(100000);
	}
}
struct Shape {
	virtual ~Shape() = default;
	virtual void draw() const { sleep(100000); STAY; }
};
PLACE(in_virtual)
{
	std::unique_ptr<Shape> shape = std::make_unique<Shape>();

	shape->draw();
}
PLACE(in_lambda)
{
	const std::function<void(int)> call = [](int n) { sleep(100000 + n); STAY; };

	call(1);
	STAY;
}
PLACE(in_std_mutex)
{
	static std::mutex lock;

	lock.lock();
	lock.lock();
}
PLACE(in_std_condition)
{
	static std::condition_variable condition;
	static std::mutex lock;
	std::unique_lock guard(lock);

	condition.wait(guard);
}
PLACE(in_std_join)
{
	std::thread([] {
		pthread_setname_np(pthread_self(), "std_thread");
		pause();
	}).join();
	STAY;
}

/* ---- kinds of code */

__attribute__((always_inline)) static inline void innermost() { sleep(100000); STAY; }
__attribute__((always_inline)) static inline void inner() { innermost(); STAY; }
PLACE(in_inlined) { inner(); STAY; }
__attribute__((noinline, noclone)) static int deep(int n)
{
	return n ? deep(n - 1) + 1 : (int)sleep(100000);
}
PLACE(in_recursion) { deep(40); STAY; }
/* A function with a frame pointer that nobody has described. */
PLACE(in_generated_code)
{
#if defined(__x86_64__)
	static const unsigned char code[] = {
		0x55, 0x48, 0x89, 0xe5,			/* push %rbp; mov %rsp, %rbp */
		0xff, 0xd7,				/* call *%rdi */
		0x5d, 0xc3,				/* pop %rbp; ret */
	};
#else
	static const unsigned int code[] = {
		0xa9bf7bfd, 0x910003fd,			/* stp x29, x30, [sp, -16]!; mov x29, sp */
		0xd63f0000,				/* blr x0 */
		0xa8c17bfd, 0xd65f03c0,			/* ldp x29, x30, [sp], 16; ret */
	};
#endif
	void *place = mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(place, code, sizeof(code));
	__builtin___clear_cache((char *)place, (char *)place + sizeof(code));
	((void (*)(void (*)()))place)(once_only);
	STAY;
}

/* ---- all of them */

static void *run(void *place)
{
	(*(void (**)())place)();
	STAY;
	return nullptr;
}

static pthread_t make(void (*place)(), const char *name)
{
	pthread_t thread;

	if (pthread_create(&thread, nullptr, run, new (void (*)())(place)))
		abort();
	pthread_setname_np(thread, name);
	return thread;
}

static void set_up()
{
	struct sigaction action = {};
	sockaddr_un address = {};
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	action.sa_handler = handler;
	sigaction(SIGUSR1, &action, nullptr);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, nullptr);
	if (pipe(empty_pipe) || pipe(full_pipe) || socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, full_pair))
		abort();
	listener = socket(AF_UNIX, SOCK_STREAM, 0);
	address.sun_family = AF_UNIX;
	if (bind(listener, (sockaddr *)&address, sizeof(sa_family_t)) || listen(listener, 1))
		abort();
	if (fcntl(full_pipe[1], F_SETPIPE_SZ, 4096) < 0 || write(full_pipe[1], page, 4096) != 4096)
		abort();
	while (send(full_pair[0], page, sizeof(page), MSG_DONTWAIT) > 0)
		;
	pthread_mutex_lock(&taken);
	pthread_rwlock_wrlock(&rwlock);
	pthread_barrier_init(&barrier, nullptr, 2);
	sem_init(&semaphore, 0, 0);
}

int main()
{
	set_up();
	sleeper = make(in_sleep, "sleep");
#define MAKE(name) make(in_##name, #name);
	MAKE(usleep) MAKE(nanosleep) MAKE(clock_nanosleep) MAKE(pause) MAKE(thrd_sleep)
	MAKE(read_pipe) MAKE(read_socket) MAKE(read_eventfd) MAKE(read_timerfd) MAKE(readv)
	MAKE(recv) MAKE(recvfrom) MAKE(recvmsg) MAKE(accept) MAKE(accept4) MAKE(write) MAKE(send)
	MAKE(poll) MAKE(ppoll) MAKE(select) MAKE(pselect) MAKE(epoll_wait) MAKE(epoll_pwait)
	MAKE(flock) MAKE(open_fifo) MAKE(waitpid) MAKE(futex)
	MAKE(mutex_lock) MAKE(mutex_timedlock) MAKE(cond_wait) MAKE(cond_timedwait) MAKE(rdlock)
	MAKE(wrlock) MAKE(sem_wait) MAKE(sem_timedwait) MAKE(barrier) MAKE(join) MAKE(mtx_lock)
	MAKE(cnd_wait) MAKE(sigwait) MAKE(sigwaitinfo) MAKE(sigsuspend) MAKE(handler)
	MAKE(handler_of_kill) MAKE(fgets) MAKE(getc) MAKE(fread) MAKE(getline) MAKE(fscanf)
	MAKE(fflush) MAKE(qsort) MAKE(bsearch) MAKE(once) MAKE(key_destructor) MAKE(cleanup)
	MAKE(destructor) MAKE(unwinding) MAKE(catch) MAKE(virtual) MAKE(lambda) MAKE(std_mutex)
	MAKE(std_condition) MAKE(std_join) MAKE(inlined) MAKE(recursion) MAKE(generated_code)
	make(in_thread_local_destructor, "tls_destructor");
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
