// SPDX-License-Identifier: MIT
// tests/programs/thread/thread_exc.cc - exceptions, unwinding and the C++ thread library.
#include "check.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <future>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

static std::atomic<int> unwound{0};

struct guard {
	~guard() { unwound++; }
};

static int deep(int n)
{
	guard g;

	if (n == 0)
		throw std::runtime_error("bottom");
	if (n % 3 == 0)
		sched_yield();
	return deep(n - 1) + 1;
}

/* A blocking call while an exception is being handled: the state of the
 * handler belongs to the thread. */
static void nested(int id, int fd_in, int fd_out)
{
	char c;

	try {
		deep(5);
	} catch (const std::exception &e) {
		CHECK_OK(strcmp(e.what(), "bottom"));
		CHECK_INT(write(fd_out, "x", 1), 1);
		CHECK_INT(read(fd_in, &c, 1), 1);
		try {
			throw id;
		} catch (int got) {
			usleep(100);
			CHECK_INT(got, id);
		}
		try {
			throw;
		} catch (const std::runtime_error &same) {
			CHECK(&same == &e);
		}
	}
	CHECK_INT(std::uncaught_exceptions(), 0);
}

static void from_c(void *)
{
	unwound++;
}

static int compare(const void *, const void *)
{
	usleep(10);
	throw 7;
}

/* Through a libc function that calls back. */
static void through_qsort()
{
	int a[4] = {4, 3, 2, 1};

	try {
		qsort(a, 4, sizeof(*a), compare);
		CHECK(false);
	} catch (int got) {
		CHECK_INT(got, 7);
	}
}

int main()
{
	enum { N = 16 };
	int fd[N][2];
	std::vector<std::thread> all;

	for (auto &p : fd)
		CHECK_OK(pipe(p));
	for (int i = 0; i < N; i++)
		all.emplace_back(nested, i, fd[i][0], fd[(i + 1) % N][1]);
	for (auto &t : all)
		t.join();
	CHECK_INT(unwound, N * 6);
	puts("nested");

	all.clear();
	for (int i = 0; i < N; i++)
		all.emplace_back(through_qsort);
	for (auto &t : all)
		t.join();
	puts("callback");

	/* pthread_exit unwinds C++ frames. */
	unwound = 0;
	finish(start([](void *) -> void * {
		guard g;
		pthread_cleanup_push(from_c, nullptr);
		[] { guard h; pthread_exit(nullptr); }();
		pthread_cleanup_pop(0);
		return nullptr;
	}, nullptr));
	CHECK_INT(unwound, 3);
	puts("exit unwinds");

	auto result = std::async(std::launch::async, deep, 9);
	try {
		result.get();
		CHECK(false);
	} catch (const std::runtime_error &e) {
		printf("from another thread: %s\n", e.what());
	}

	std::mutex m;
	std::condition_variable cv;
	int turn = 0;
	all.clear();
	for (int i = 0; i < 8; i++)
		all.emplace_back([&, i] {
			std::unique_lock<std::mutex> l(m);
			cv.wait(l, [&] { return turn == i; });
			turn++;
			cv.notify_all();
		});
	for (auto &t : all)
		t.join();
	CHECK_INT(turn, 8);
	{
		std::unique_lock<std::mutex> l(m);
		auto t0 = std::chrono::steady_clock::now();
		CHECK(!cv.wait_for(l, std::chrono::milliseconds(20),
				   [] { return false; }));
		CHECK(std::chrono::steady_clock::now() - t0 >=
		      std::chrono::milliseconds(20));
	}

	std::promise<int> p;
	std::thread t([&] { p.set_value(5); });
	CHECK_INT(p.get_future().get(), 5);
	t.join();
	std::once_flag once;
	int runs = 0;
	try {
		std::call_once(once, [&] { runs++; throw 1; });
	} catch (int) {
	}
	std::call_once(once, [&] { runs++; });
	std::call_once(once, [&] { runs++; });
	CHECK_INT(runs, 2);
	puts("library");
	return success();
}
