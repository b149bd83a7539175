// SPDX-License-Identifier: MIT
/*
 * tests/programs/sync/sync_cxx20.cc - what C++20's library synchronises with, from many
 * threads: threads, tasks, locks, latches, barriers, semaphores, stop tokens, waits
 * for atomics, once, exceptions, thread_local objects.
 */
#include "check.h"

#include <atomic>
#include <barrier>
#include <chrono>
#include <condition_variable>
#include <future>
#include <latch>
#include <mutex>
#include <numeric>
#include <semaphore>
#include <shared_mutex>
#include <stdexcept>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

using namespace std::chrono_literals;

namespace {

constexpr int THREADS = 64;
constexpr int ROUNDS = 100;

// Runs fn(0) ... fn(n - 1), a thread for each.
template <typename F> void in_threads(int n, F fn)
{
	std::vector<std::jthread> threads;

	for (int i = 0; i < n; i++)
		threads.emplace_back(fn, i);
}

void threads_and_ids()
{
	std::mutex lock;
	std::vector<std::thread::id> ids;
	std::thread moved, t([] {});

	moved = std::move(t);
	CHECK(!t.joinable() && moved.joinable());
	moved.join();
	in_threads(THREADS, [&](int) {
		std::lock_guard held(lock);

		ids.push_back(std::this_thread::get_id());
		std::this_thread::yield();
	});
	CHECK_INT(ids.size(), THREADS);
	CHECK(std::thread::hardware_concurrency() >= 1);
}

void futures()
{
	std::vector<std::future<int>> results;
	std::promise<std::string> promise;
	std::shared_future<std::string> shared = promise.get_future().share();
	std::atomic<int> seen = 0;

	for (int i = 0; i < THREADS; i++)
		results.push_back(std::async(std::launch::async, [i] {
			std::this_thread::sleep_for(100us * (i % 5));
			if (i % 8 == 7)
				throw std::runtime_error("task " + std::to_string(i));
			return i;
		}));
	for (int i = 0; i < THREADS; i++) {
		try {
			CHECK_INT(results[i].get(), i);
			CHECK(i % 8 != 7);
		} catch (const std::runtime_error &e) {
			CHECK(e.what() == "task " + std::to_string(i));
		}
	}
	{
		std::vector<std::jthread> waiters;

		for (int i = 0; i < THREADS; i++)
			waiters.emplace_back([&] {
				CHECK(shared.get() == "value");
				seen++;
			});
		CHECK(shared.wait_for(2ms) == std::future_status::timeout);
		promise.set_value("value");
	}
	CHECK_INT(seen, THREADS);

	std::future<void> broken;
	{
		std::promise<void> never;

		broken = never.get_future();
	}
	try {
		broken.get();
		CHECK(false);
	} catch (const std::future_error &e) {
		CHECK(e.code() == std::future_errc::broken_promise);
	}
	std::packaged_task<int(int)> task([](int n) { return n * 2; });
	auto doubled = task.get_future();
	std::jthread runner(std::move(task), 21);
	CHECK_INT(doubled.get(), 42);
}

void conditions()
{
	std::mutex lock;
	std::condition_variable cond;
	std::condition_variable_any any;
	std::vector<int> queue;
	long sum = 0;
	int taken = 0;

	in_threads(THREADS, [&](int i) {
		for (int n = 0; n < ROUNDS; n++) {
			if (i % 2) {
				std::lock_guard held(lock);

				queue.push_back(n);
				cond.notify_one();
			} else {
				std::unique_lock held(lock);

				cond.wait(held, [&] { return !queue.empty(); });
				sum += queue.back();
				queue.pop_back();
				taken++;
			}
		}
	});
	CHECK_INT(taken, THREADS / 2 * ROUNDS);
	CHECK_INT(sum, THREADS / 2 * (ROUNDS * (ROUNDS - 1) / 2));

	auto begin = std::chrono::steady_clock::now();
	std::unique_lock held(lock);
	CHECK(cond.wait_for(held, 3ms) == std::cv_status::timeout);
	CHECK(!any.wait_until(held, std::chrono::system_clock::now() + 3ms, [] { return false; }));
	CHECK(std::chrono::steady_clock::now() - begin >= 5ms);
}

void locks()
{
	std::recursive_mutex recursive;
	std::timed_mutex timed;
	std::shared_mutex shared;
	std::shared_timed_mutex shared_timed;
	std::mutex a, b;
	long by_recursive = 0, by_scoped = 0, by_writers = 0;

	in_threads(THREADS, [&](int i) {
		for (int n = 0; n < ROUNDS; n++) {
			{
				std::lock_guard outer(recursive);
				std::lock_guard inner(recursive);

				by_recursive++;
			}
			if (i % 2) {
				std::scoped_lock both(a, b);
				by_scoped++;
			} else {
				std::scoped_lock both(b, a);
				by_scoped++;
			}
			if (n % 8 == 0) {
				std::unique_lock writer(shared);
				by_writers++;
			} else {
				std::shared_lock reader(shared);
				CHECK(by_writers >= 0);
			}
		}
	});
	CHECK_INT(by_recursive, THREADS * ROUNDS);
	CHECK_INT(by_scoped, THREADS * ROUNDS);
	CHECK_INT(by_writers, THREADS * ((ROUNDS + 7) / 8));

	std::lock_guard held(timed);
	std::shared_lock reading(shared_timed);
	in_threads(4, [&](int) {
		auto begin = std::chrono::steady_clock::now();

		CHECK(!timed.try_lock_for(2ms));
		CHECK(!shared_timed.try_lock_until(std::chrono::steady_clock::now() + 2ms));
		CHECK(shared_timed.try_lock_shared_for(1s));
		shared_timed.unlock_shared();
		CHECK(std::chrono::steady_clock::now() - begin >= 4ms);
	});
}

void latches_and_barriers()
{
	std::latch start(THREADS + 1), end(THREADS);
	std::atomic<int> arrived = 0, phases = 0;
	std::barrier barrier(THREADS, [&]() noexcept {
		CHECK_INT(arrived, THREADS * ++phases);
	});
	std::counting_semaphore<8> seats(8);
	std::binary_semaphore once(0);
	std::atomic<int> sitting = 0;

	std::jthread opener([&] {
		end.wait();
		once.release();
	});
	std::vector<std::jthread> threads;
	for (int i = 0; i < THREADS; i++)
		threads.emplace_back([&] {
			start.arrive_and_wait();
			for (int n = 0; n < 10; n++) {
				arrived++;
				barrier.arrive_and_wait();
			}
			for (int n = 0; n < 10; n++) {
				seats.acquire();
				CHECK(++sitting <= 8);
				std::this_thread::yield();
				sitting--;
				seats.release();
			}
			end.count_down();
		});
	CHECK(!start.try_wait());
	start.count_down();
	once.acquire();
	CHECK_INT(phases, 10);
	CHECK(end.try_wait());
	CHECK(!once.try_acquire_for(2ms));
}

void atomic_waits()
{
	std::atomic<int> turn = 0;
	std::atomic<long long> wide = 0;
	std::atomic_flag flag;
	std::atomic<int> woken = 0;

	// One after the other, each waiting for its turn.
	in_threads(8, [&](int i) {
		for (int n = 0; n < ROUNDS; n++) {
			for (int now = turn; now % 8 != i; now = turn)
				turn.wait(now);
			turn++;
			turn.notify_all();
		}
	});
	CHECK_INT(turn, 8 * ROUNDS);
	{
		std::vector<std::jthread> waiters;

		for (int i = 0; i < THREADS; i++)
			waiters.emplace_back([&, i] {
				if (i % 2)
					wide.wait(0);
				else
					flag.wait(false);
				woken++;
			});
		std::this_thread::sleep_for(2ms);
		CHECK_INT(woken, 0);
		wide = 1LL << 40;
		wide.notify_all();
		flag.test_and_set();
		flag.notify_all();
	}
	CHECK_INT(woken, THREADS);
}

void stopping()
{
	std::mutex lock;
	std::condition_variable_any cond;
	std::atomic<int> stopped = 0, called = 0;
	{
		std::vector<std::jthread> threads;

		for (int i = 0; i < THREADS; i++)
			threads.emplace_back([&](std::stop_token token) {
				std::latch ran(1);
				std::stop_callback callback(token, [&] {
					called++;
					ran.count_down();
				});
				std::unique_lock held(lock);

				CHECK(!cond.wait(held, token, [] { return false; }));
				CHECK(token.stop_requested());
				stopped++;
				held.unlock();
				// Gone before its turn, it would not be called.
				ran.wait();
			});
		threads[0].request_stop();
	}
	CHECK_INT(stopped, THREADS);
	CHECK_INT(called, THREADS);
}

void once_with_exceptions()
{
	std::once_flag flag;
	std::atomic<int> tries = 0, thrown = 0;

	in_threads(THREADS, [&](int) {
		try {
			std::call_once(flag, [&] {
				std::this_thread::sleep_for(200us);
				if (++tries < 4)
					throw std::runtime_error("not yet");
			});
		} catch (const std::runtime_error &) {
			thrown++;
		}
		CHECK(tries <= 4);
	});
	CHECK_INT(tries, 4);
	CHECK_INT(thrown, 3);
}

int slow_initial()
{
	std::this_thread::sleep_for(1ms);
	return 7;
}

void local_statics()
{
	std::atomic<int> sum = 0;

	in_threads(THREADS, [&](int) {
		static int value = slow_initial();
		sum += value;
	});
	CHECK_INT(sum, 7 * THREADS);
}

std::atomic<int> made, destroyed;

struct Local {
	std::string text;
	Local() : text("initial, and too long for a short string") { made++; }
	~Local() { destroyed++; }
};

thread_local Local local;
thread_local std::vector<int> path;

int deep(int n)
{
	Local on_stack;

	path.push_back(n);
	// A switch in the middle of unwinding must not mix up the exceptions.
	if (n == 0)
		throw std::runtime_error(local.text);
	try {
		return deep(n - 1);
	} catch (const std::runtime_error &) {
		std::this_thread::yield();
		CHECK(std::uncaught_exceptions() == 0);
		throw;
	}
}

void exceptions_and_locals()
{
	// Twice: the second time in threads that may be recycled.
	for (int round = 0; round < 2; round++) {
		made = destroyed = 0;
		in_threads(THREADS, [&](int i) {
			CHECK(local.text == "initial, and too long for a short string");
			CHECK(path.empty());
			local.text = "thread " + std::to_string(i);
			try {
				deep(20);
				CHECK(false);
			} catch (const std::exception &e) {
				CHECK(e.what() == "thread " + std::to_string(i));
			}
			CHECK_INT(path.size(), 21);
			CHECK_INT(std::accumulate(path.begin(), path.end(), 0), 210);
			try {
				std::rethrow_exception(std::async(std::launch::async, [] {
					return std::make_exception_ptr(42);
				}).get());
			} catch (int n) {
				CHECK_INT(n, 42);
			}
		});
		CHECK(made >= THREADS * 22);
		CHECK_INT(made, destroyed);
	}
}

} // namespace

int main()
{
	threads_and_ids();
	futures();
	conditions();
	locks();
	latches_and_barriers();
	atomic_waits();
	stopping();
	once_with_exceptions();
	local_statics();
	exceptions_and_locals();
	return success();
}
