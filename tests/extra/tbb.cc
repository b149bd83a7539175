// SPDX-License-Identifier: MIT
/*
 * tests/extra/tbb.cc - oneTBB's workers, called from main and from threads of the
 * program's own.
 */
#include "check.h"

#include <atomic>
#include <tbb/concurrent_queue.h>
#include <tbb/global_control.h>
#include <tbb/parallel_for.h>
#include <tbb/parallel_reduce.h>
#include <tbb/task_arena.h>
#include <tbb/task_group.h>
#include <thread>
#include <vector>

static void work()
{
	std::atomic<long> tasks = 0, items = 0;
	tbb::concurrent_bounded_queue<long> queue;
	tbb::task_group group;
	long sum;

	for (int round = 0; round < 20; round++) {
		sum = tbb::parallel_reduce(
			tbb::blocked_range<long>(0, 20000), 0L,
			[](const tbb::blocked_range<long> &r, long s) {
				for (long i = r.begin(); i < r.end(); i++)
					s += i;
				return s;
			},
			std::plus<long>());
		CHECK_INT(sum, 20000L * 19999 / 2);
	}
	for (int i = 0; i < 200; i++)
		group.run([&] { tasks++; });
	group.wait();
	CHECK_INT(tasks, 200);
	tbb::task_arena arena(3);
	arena.execute([&] { tbb::parallel_for(0, 1000, [&](int) { items++; }); });
	CHECK_INT(items, 1000);

	queue.set_capacity(4);
	std::thread producer([&] {
		for (long i = 0; i < 500; i++)
			queue.push(i);
	});
	for (long i = 0; i < 500; i++) {
		long got;

		queue.pop(got);
		CHECK_INT(got, i);
	}
	producer.join();
}

int main()
{
	// More than one worker also on a small machine.
	tbb::global_control four(tbb::global_control::max_allowed_parallelism, 4);
	std::vector<std::thread> threads;

	work();
	for (int i = 0; i < 8; i++)
		threads.emplace_back(work);
	work();
	for (auto &t : threads)
		t.join();
	return success();
}
