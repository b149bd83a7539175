/* SPDX-License-Identifier: MIT */
/*
 * tests/programs/sync/sync_cxx.cc - std::call_once with exceptions, std::shared_mutex and
 * std::shared_timed_mutex, the recursive and timed ones, and exceptions that leave
 * with locks held.
 */
#include "check.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <shared_mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

static const int threads = 16;

static void run(const std::function<void(int)> &fn)
{
	std::vector<std::thread> all;

	for (int i = 0; i < threads; i++)
		all.emplace_back(fn, i);
	for (auto &t : all)
		t.join();
}

/* The first five throw while all others wait for them. */
static void call_once_throws()
{
	std::once_flag once;
	std::atomic<int> tries { 0 }, caught { 0 }, done { 0 };
	std::string result;

	run([&](int) {
		try {
			std::call_once(once, [&] {
				int mine = ++tries;

				std::this_thread::sleep_for(1ms);
				if (mine <= 5)
					throw std::runtime_error("not yet");
				result = "done";
			});
			CHECK(result == "done");
			done++;
		} catch (const std::runtime_error &e) {
			CHECK(std::string(e.what()) == "not yet");
			caught++;
		}
	});
	CHECK_INT(tries, 6);
	CHECK_INT(caught, 5);
	CHECK_INT(done, threads - 5);
	puts("call_once");
}

/* The same without std::call_once's own guard against exceptions. */
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;
static std::atomic<int> plain_tries { 0 };

struct noisy {
	int &count;
	~noisy() { count++; }
};

static void plain_routine()
{
	if (++plain_tries <= 3) {
		std::this_thread::sleep_for(1ms);
		throw plain_tries.load();
	}
}

static void pthread_once_throws()
{
	std::atomic<int> caught { 0 }, cleaned { 0 };

	run([&](int) {
		int count = 0;

		try {
			noisy here { count };
			CHECK_OK(pthread_once(&plain_once, plain_routine));
		} catch (int n) {
			CHECK(n >= 1 && n <= 3);
			caught++;
		}
		cleaned += count;
	});
	CHECK_INT(plain_tries, 4);
	CHECK_INT(caught, 3);
	CHECK_INT(cleaned, threads);
	puts("pthread_once");
}

template <class M> static void shared(const char *name)
{
	M mutex;
	long value = 0, copy = 0;
	std::atomic<int> inside { 0 }, at_once { 0 };

	run([&](int id) {
		for (int i = 0; i < 300; i++) {
			if ((i + id) % 10 == 0) {
				std::unique_lock lock(mutex);
				CHECK_INT(inside.load(), 0);
				value++;
				if (i % 50 == 0)
					std::this_thread::yield();
				copy++;
			} else {
				std::shared_lock lock(mutex);
				int n = ++inside;

				if (n > at_once)
					at_once = n;
				CHECK_INT(value, copy);
				if (i % 20 == 0)
					std::this_thread::yield();
				CHECK_INT(value, copy);
				inside--;
			}
		}
	});
	CHECK_INT(value, threads * 30);
	CHECK(mutex.try_lock());
	std::thread([&] {
		CHECK(!mutex.try_lock());
		CHECK(!mutex.try_lock_shared());
	}).join();
	mutex.unlock();
	CHECK(mutex.try_lock_shared());
	std::thread([&] {
		CHECK(!mutex.try_lock());
		CHECK(mutex.try_lock_shared());
		mutex.unlock_shared();
	}).join();
	mutex.unlock_shared();
	puts(name);
}

static void timed()
{
	std::shared_timed_mutex mutex;
	std::timed_mutex plain;
	std::recursive_timed_mutex recursive;

	mutex.lock();
	plain.lock();
	recursive.lock();
	CHECK(recursive.try_lock_for(1ms));
	std::thread([&] {
		auto start = std::chrono::steady_clock::now();

		CHECK(!mutex.try_lock_for(3ms));
		CHECK(!mutex.try_lock_shared_for(3ms));
		CHECK(!mutex.try_lock_shared_until(std::chrono::system_clock::now() + 3ms));
		CHECK(!plain.try_lock_for(3ms));
		CHECK(!recursive.try_lock_for(3ms));
		CHECK(std::chrono::steady_clock::now() - start >= 15ms);
	}).join();
	recursive.unlock();
	recursive.unlock();
	plain.unlock();
	mutex.unlock();
	std::thread([&] {
		CHECK(mutex.try_lock_shared_for(1s));
		CHECK(recursive.try_lock_for(1s));
		recursive.unlock();
		mutex.unlock_shared();
	}).join();
	puts("timed");
}

/* Unwinding releases what is held, and another thread gets it. */
static void exceptions()
{
	std::mutex mutex;
	std::condition_variable_any any;
	std::shared_mutex shared;
	int thrown = 0, turn = 0;

	run([&](int id) {
		for (int i = 0; i < 20; i++)
			try {
				std::scoped_lock lock(mutex, shared);

				std::this_thread::yield();
				thrown++;
				throw id;
			} catch (int n) {
				CHECK_INT(n, id);
			}
		std::unique_lock lock(shared);

		any.wait(lock, [&] { return turn == id; });
		turn++;
		any.notify_all();
	});
	CHECK_INT(thrown, threads * 20);
	CHECK_INT(turn, threads);
	puts("exceptions");
}

int main()
{
	call_once_throws();
	pthread_once_throws();
	shared<std::shared_mutex>("shared_mutex");
	shared<std::shared_timed_mutex>("shared_timed_mutex");
	timed();
	exceptions();
	return success();
}
