#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/lib/answers.py - what becomes of a program when a system call of the library fails.

    answers.py [--quick] [--write] [--filter WORDS] [--jobs N] BUILD TABLE

Runs the programs of SETTINGS on both backends, and lists the system calls that the library makes in
them (tests/helpers/deny.c), by function, call and source file.  Then it fails each: the first, the second,
the third, the last, each second one, and all from the first and from the second on, with each error of
ERRORS.  So it does, in all_rungs, with the fault points of a library that has them (runtime/base/fault.def).  What
happens must be what the table says.  Each fault point has a row, and all_rungs reaches it.

--write adds to the table what happens, and drops what is not there any more; --quick is a small part,
the same each time; --filter takes points with all of these words, at least one.
"""
import argparse
import concurrent.futures
import errno
import os
import re
import subprocess
import sys
import tempfile

# What each call may answer here: the kernel's errors for these arguments, and what sandboxes answer.
# A call that is not here answers EPERM, as to a sandbox.
ERRORS = {
    'clone': 'EAGAIN ENOMEM', 'clone3': 'EAGAIN ENOMEM ENOSYS', 'close': 'EIO EINTR', 'mmap': 'ENOMEM',
    'munmap': 'ENOMEM', 'mprotect': 'ENOMEM EACCES', 'madvise': 'EINVAL EAGAIN ENOMEM',
    'futex': 'EINTR EAGAIN', 'io_uring_setup': 'ENOMEM EPERM EMFILE ENOSYS EINVAL',
    'io_uring_enter': 'EINTR EAGAIN EBUSY EPERM', 'io_uring_register': 'EINVAL EPERM EBUSY ENOMEM',
    'eventfd2': 'EMFILE ENFILE ENOMEM EPERM', 'epoll_create1': 'EMFILE ENFILE ENOMEM EPERM',
    'epoll_ctl': 'ENOMEM ENOSPC', 'epoll_pwait': 'EINTR', 'epoll_wait': 'EINTR',
    'epoll_pwait2': 'EINTR ENOSYS', 'fcntl': 'EMFILE EINVAL EPERM', 'openat': 'EMFILE ENFILE ENOENT EACCES',
    'read': 'EIO EINTR EPERM', 'write': 'EIO EPERM', 'tgkill': 'EAGAIN EPERM',
    'rt_tgsigqueueinfo': 'EAGAIN EPERM', 'rt_sigqueueinfo': 'EAGAIN EPERM', 'prlimit64': 'EPERM',
    'ppoll': 'EINTR ENOMEM', 'sched_getaffinity': 'EPERM EINVAL', 'statx': 'ENOSYS EPERM EACCES',
    'dup3': 'EBUSY EINTR EMFILE EPERM', 'pidfd_open': 'EMFILE ENFILE ENOMEM ENOSYS EPERM', 'pselect6': 'EINTR ENOMEM',
    'pwrite64': 'EIO ENOSPC EPERM', 'nanosleep': 'EINTR', 'clock_nanosleep': 'EINTR', 'rt_sigtimedwait': 'EINTR EAGAIN',
}
# The kernel cannot refuse them, and no program runs where a filter does.  close() is done when it fails,
# which a filter cannot do.
NEVER = 'close clock_gettime exit exit_group getpid gettid restart_syscall rt_sigaction ' \
    'rt_sigprocmask rt_sigreturn set_robust_list set_tid_address sigaltstack'.split()
# Not for good: libfiberize(7), WHAT DIFFERS, says what happens then; and signals end that interrupt a look.
TRANSIENT = {('rt_tgsigqueueinfo', 'EAGAIN'), ('pselect6', 'EINTR')}
# Functions that make the program's call: its answer is the program's.
PROGRAMS = ('fz_clone_fork ', 'fz_io_make ', 'fz_io_try ', 'real_call ', 'send_or_receive ',
            'attempt runtime/io/op_ready.c', 'transfer runtime/io/op_ready.c', 'real runtime/sync/futex.c',
            'wait_common preload/process/wait.c', 'look preload/process/wait.c',
            'fz_kill_own_process preload/signal/kill.c', 'receive_present runtime/io/message.c',
            'connect_at_once runtime/io/socket.c', 'fz_futex2_')
# Which program runs with what, besides the backend.  What is reached only with a later one is failed with that.
SETTINGS = (('all_rungs', {}),
            ('all_rungs', {'FIBERIZE_STATS': './counters.%p', 'FIBERIZE_DEADLOCK': 'report', 'MORE': '1',
                           'RESTS': '1'}),
            ('odd_rungs', {}), ('odd_rungs', {'SLOW': '1'}))
NEEDED = ('libfiberize.so', 'checked/libfiberize.so', 'tests/helpers/all_rungs', 'tests/helpers/odd_rungs',
          'tests/helpers/deny', 'tests/helpers/watch')
TIMES = '1 2 3 last 1/2 1+ 2+'.split()
# Points that cannot fire for good: what they stand for ends.
ENDLESS = {(fault, '+') for fault in ('futex_eintr', 'futex_spurious', 'late_completion', 'no_sqe',
                                      'submit_again', 'submit_busy', 'wait_eintr')}
# Points that are reached where other points fire, or with these variables.
CIRCUMSTANCES = {
    'deny_kick_by_vector': ('deny_kick:1+,', {}),
    'deny_kick_by_offset': ('deny_kick:1+,deny_kick_by_vector:1+,', {}),
    'deny_write': ('', {'FIBERIZE_IO': 'ring'}), 'deny_writev': ('', {'FIBERIZE_IO': 'ring'}),
    'thread_end': ('', {'RESTS': '1'}),
}
# Points of requests that Linux has from 6.7 on; and one that is reached wherever io_uring is used.
RECENT, ON_RING = ('deny_futex_wait', 'deny_waitid'), 'late_submit'
# Messages with which the library ends the program: libfiberize(7), LIMITS.
DOCUMENTED = ('fiberize: a thread needs a kernel thread of its own, and none can be made: ',)
# What --quick fails: calls that make something.
QUICK = 'clone epoll_create1 epoll_ctl eventfd2 fcntl io_uring_register io_uring_setup mmap mprotect openat'.split()
# A guard that is no marker of the kernel's is a mapping: three for each of the stacks of all_rungs, at most.
GUARD, GUARDS = 'madvise install_guard', 160
# all_rungs has so many threads at a time. Where calls cannot be requests, or on a busy machine, each has a kernel thread.
THREADS = 24
REFUSED = 11
LISTS = 3
ROOT = os.path.realpath(os.path.join(os.path.dirname(__file__), '..', '..'))


def numbers(compiler='gcc'):
    text = subprocess.run([compiler, '-dM', '-E', '-include', 'asm/unistd.h', '-x', 'c', '/dev/null'],
                          capture_output=True, text=True, check=True).stdout
    return {int(n): name for name, n in re.findall(r'#define __NR_(\w+) (\d+)\n', text)}


def source_places(library, places):
    """For each place "function file", past the functions that only make system calls."""
    lines = subprocess.run(['addr2line', '-a', '-f', '-i', '-e', library] + ['0x' + p for p in places],
                           capture_output=True, text=True, check=True).stdout.split('\n')
    found, place, number = {}, None, 0
    while number < len(lines) - 1:
        if lines[number].startswith('0x'):
            place, number = '%x' % int(lines[number], 16), number + 1
            continue
        function, where = lines[number], lines[number + 1].split(':')[0]
        number += 2
        where = where.replace(ROOT + '/', '').replace('./', '')
        if where.startswith('arch/') and function.startswith('fz_syscall') or \
                where.endswith('base/sys.h') and function.startswith('fz_sys'):
            continue
        found.setdefault(place, '%s %s' % (function, where if where.endswith(('.c', '.h', '.S')) else 'liburing'))
    return found


def fault_points():
    with open(os.path.join(ROOT, 'runtime/base/fault.def')) as source:
        return re.findall(r'^FZ_FAULT_POINT\((\w+),', source.read(), re.M)


class Table:
    """Rows: point, errors, what may happen.  The page is the expectation, too."""

    ROW = re.compile(r'^\| `([^`]+)` \| ([^|]+) \| ([^|]+) \|$')
    # What may happen, between semicolons; a message may have such, too.
    WHAT = re.compile(r'(?:[^;"]|"[^"]*")+')

    def __init__(self, path):
        self.path, self.rows = path, {}
        with open(path) as page:
            self.head = []
            for line in page:
                row = self.ROW.match(line)
                if row:
                    for error in row[2].split():
                        self.rows[row[1], error] = {what.strip() for what in self.WHAT.findall(row[3])}
                elif not self.rows:
                    self.head.append(line)

    def allows(self, point, error, what):
        return what in self.rows.get((point, error), ())

    def add(self, point, error, what):
        self.rows.setdefault((point, error), set()).add(what)

    def missing_faults(self, reached):
        """In words: fault points without a row, and rows of points that no run reached, if it is known which did."""
        for fault in fault_points():
            if ('fault ' + fault, '-') not in self.rows:
                yield fault + ' has no row'
            elif ON_RING in reached and fault not in reached and fault not in RECENT:
                yield fault + ' has a row, and all_rungs does not reach it'

    def is_there(self, point):
        """Do the file and the function of a row exist?  Does the fault point?"""
        words = point.split()
        if words[0] == 'fault':
            return words[1] in fault_points()
        if len(words) < 3 or words[2] == 'liburing':
            return True
        path = os.path.join(ROOT, words[2])
        if not os.path.exists(path):
            return False
        with open(path) as source:
            return re.search(r'\b%s\b' % words[1], source.read()) is not None

    def write(self):
        grouped = {}
        for (point, error), whats in self.rows.items():
            if self.is_there(point):
                grouped.setdefault((point, '; '.join(sorted(whats))), []).append(error)
        with open(self.path, 'w') as page:
            page.writelines(self.head)
            for (point, whats), errors in sorted(grouped.items()):
                page.write('| `%s` | %s | %s |\n' % (point, ' '.join(sorted(errors)), whats))


class Driver:
    def __init__(self, build, scratch):
        self.build, self.scratch = build, scratch
        self.natives = [self.run('native', self.command(setting))[1] for setting in SETTINGS]

    def helper(self, name):
        return os.path.join(self.build, 'tests', 'helpers', name)

    def command(self, setting):
        program, variables = setting
        return ['env', *('%s=%s' % variable for variable in variables.items()), self.helper(program)]

    def native(self, setting):
        """What the program says without the library."""
        return self.natives[SETTINGS.index(setting)]

    def run(self, name, command):
        """Exit status (124: it hangs), output, what it said."""
        base = os.path.join(self.scratch, name)
        env = {k: v for k, v in os.environ.items() if not k.startswith(('FIBERIZE_', 'FZ_', 'LD_'))}
        with open(base + '.out', 'wb') as out, open(base + '.err', 'wb') as err:
            status = subprocess.run([self.helper('watch'), '-l', '30'] + command, env=env, stdout=out, cwd=self.scratch,
                                    stderr=err, stdin=subprocess.DEVNULL).returncode
        result = [status]
        for suffix in '.out', '.err':
            with open(base + suffix, errors='replace') as f:
                result.append(f.read())
            os.unlink(base + suffix)
        return tuple(result)

    def denied(self, name, backend, deny, setting):
        """A run under the filter; with it the lines that the helper wrote."""
        record = os.path.join(self.scratch, name + '.record')
        result = self.run(name, [self.helper('deny'), *deny, '-r', record, 'env',
                                 'LD_PRELOAD=%s/libfiberize.so' % self.build, 'FIBERIZE_BACKEND=' + backend,
                                 'FIBERIZE_PROCESSORS=2', *self.command(setting)])
        lines = []
        if os.path.exists(record):
            with open(record) as f:
                lines = [line.split() for line in f]
            os.unlink(record)
        return result, lines

    def faulty(self, name, backend, fault, when=''):
        """A run in which a fault point fires, if `when` says so; with it how often each was reached, and has fired."""
        others, variables = CIRCUMSTANCES.get(fault, ('', {}))
        faults = others + ('%s:%s' % (fault, when) if when else '')
        status, out, err = self.run(name, ['env', 'LD_PRELOAD=%s/checked/libfiberize.so' % self.build,
                                           'FIBERIZE_BACKEND=' + backend, 'FIBERIZE_PROCESSORS=2',
                                           'FIBERIZE_STATS=1', 'FZ_FAULTS=' + faults.rstrip(','),
                                           *self.command(('all_rungs', variables))])
        counts, said = {}, []
        for line in err.splitlines(True):
            point = re.match(r'fiberize: fault (\w+): reached (\d+), fired (\d+)$', line)
            if point:
                old = counts.get(point[1], (0, 0))
                counts[point[1]] = old[0] + int(point[2]), old[1] + int(point[3])
            elif not re.match(r'fiberize: all_rungs\[\d+\]: ', line):
                said.append(line)
        return (status, out, ''.join(said)), counts

    def points(self, backend, setting):
        """{point: [number of the call, places, times, in how many lists]}; what a process leaves."""
        names, at, left = numbers(), {}, [0, 0, 0]
        for number in range(LISTS):
            result, lines = self.denied('list%d' % number, backend, [], setting)
            if result != (0, self.native(setting), ''):
                sys.exit('FAIL nothing denied, on %s, with %s: %s' % (backend, setting, result))
            for line in lines:
                if line[0] == 'call':
                    times = at.setdefault((int(line[1]), line[2]), [0] * LISTS)
                    times[number] = int(line[3])
                elif line[0] == 'left':
                    left = [max(a, int(b)) for a, b in zip(left, line[1:])]
        where = source_places(self.build + '/libfiberize.so', sorted({place for _, place in at}))
        points = {}
        for (call, place), times in sorted(at.items()):
            name = '%s %s' % (names.get(call, call), where.get(place, '? ?'))
            if name.split()[0] not in NEVER and not name.split(' ', 1)[1].startswith(PROGRAMS):
                point = points.setdefault(name, [call, [], [0] * LISTS])
                point[1].append(place)
                point[2] = [a + b for a, b in zip(point[2], times)]
        return points, left

    def outcome(self, result, setting, left=None, now=None, mappings=0):
        """What happened, in words; with "!" in them if it must not.  mappings: so many more may be left."""
        status, out, err = result
        native = self.native(setting)
        refused = err.count('EAGAIN\n')
        said = err.replace('EAGAIN\n', '').strip()
        what = 'as natively'
        if status == REFUSED and refused and native.startswith(out):
            what = 'EAGAIN'
        elif status == 124:
            what = '!hangs'
        elif status == 134 and said.startswith(DOCUMENTED):
            what = 'ends'
        elif status or out != native:
            what = '!status %d' % status if status else '!other output'
        elif refused:
            what = 'EAGAIN, then as natively'
        if said:
            # Each process of the program says it, or each that the error reaches.
            lines = dict.fromkeys(re.sub(r'\[\d+\]|\d{3,}', 'N', said.replace('|', ' ').replace('"', "'")).split('\n'))
            what += ', "%s"' % ' / '.join(lines)
        if not status and now:
            if now[0] > left[0] + 1:
                what += ', !leaves %d descriptors, not %d' % (now[0], left[0])
            if now[2] > left[2] + THREADS:
                what += ', !leaves %d threads, not %d' % (now[2], left[2])
            # Each thread that could not be made in time costs some.
            if now[1] > left[1] + 60 + mappings:
                what += ', !leaves %d mappings, not %d' % (now[1], left[1])
        return what

    def judge(self, name, job):
        """(fired, what happened)"""
        if job.places is None:
            fault = job.point.split()[1]
            result, counts = self.faulty(name, job.backend, fault, job.when)
            fired = counts.get(fault, (0, 0))[1]
            # Dead, it counts nothing.
            return fired or result[0] >= 124, self.outcome(result, SETTINGS[0])
        deny = '%d:%s:%d:%s' % (job.call, job.when, getattr(errno, job.error), ','.join(job.places))
        result, lines = self.denied(name, job.backend, ['-d', deny], job.setting)
        facts = {line[0]: [int(n) for n in line[1:]] for line in lines if line[0] != 'call'}
        mappings = GUARDS if job.point.startswith(GUARD) else 0
        return facts.get('fired', [1])[0], self.outcome(result, job.setting, job.left, facts.get('left'), mappings)


class Job:
    def __init__(self, point, backend, error, when, call=0, places=None, left=None, setting=None):
        self.point, self.backend, self.error, self.when = point, backend, error, when
        self.call, self.places, self.left, self.setting = call, places, left, setting

    def __str__(self):
        program, variables = self.setting or SETTINGS[0]
        return '%s:%s %s, %s %s%s' % (self.point, self.when, self.error, self.backend, program,
                                      ''.join(' %s=%s' % variable for variable in variables.items()))


def times_for(most):
    for when in TIMES:
        if when == 'last' and most > 3:
            yield str(most)
        elif not when.isdigit() and when != 'last' or when.isdigit() and int(when) <= most:
            yield when


def jobs_of(points, quick, backend, left, setting):
    for number, (point, (call, places, times)) in enumerate(sorted(points.items())):
        errors = ERRORS.get(point.split()[0], 'EPERM').split()
        if quick:
            if point.split()[0] in QUICK and (number % 2 == (backend == 'epoll') or point[:4] == 'mmap'):
                yield Job(point, backend, errors[0], '1+', call, places, left, setting)
            continue
        for error in errors:
            for when in times_for(max(times)):
                if when[-1] != '+' or (point.split()[0], error) not in TRANSIENT:
                    yield Job(point, backend, error, when, call, places, left, setting)


def list_jobs(driver, quick):
    """All runs; the points that are reached each time; the fault points that are reached."""
    jobs, always, faults = [], set(), set()
    for backend in 'uring', 'epoll':
        seen = set()
        for setting in SETTINGS[:1] if quick else SETTINGS:
            points, left = driver.points(backend, setting)
            points = {point: found for point, found in points.items() if point not in seen}
            seen.update(points)
            always.update(point for point, found in points.items() if min(found[2]) > 0)
            jobs += list(jobs_of(points, quick, backend, left, setting))
        if quick:
            continue
        counts = driver.faulty('faults', backend, '')[1]
        faults.update(counts)
        for fault in CIRCUMSTANCES:
            others = driver.faulty('faults', backend, fault)[1]
            faults.update(others)
            counts[fault] = others.get(fault, (0, 0))
        for fault, (reached, _) in sorted(counts.items()):
            for when in times_for(reached):
                # A filter that denies a request denies it for good.
                if (fault, when[-1]) not in ENDLESS and (fault[:5] != 'deny_' or when[-1] == '+'):
                    jobs.append(Job('fault ' + fault, backend, '-', when))
    return jobs, always, faults


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--quick', action='store_true')
    parser.add_argument('--write', action='store_true')
    parser.add_argument('--filter', default='')
    parser.add_argument('--jobs', type=int, default=3 * (os.cpu_count() or 1))
    parser.add_argument('build')
    parser.add_argument('table')
    arguments = parser.parse_args()
    for needed in arguments.table, *(os.path.join(arguments.build, name) for name in NEEDED):
        if not os.path.exists(needed):
            parser.exit(2, 'answers.py: %s is missing: run make tests\n' % needed)
    table, failed = Table(arguments.table), 0

    def say(ok, name, why):
        nonlocal failed
        failed += not ok
        print('PASS ' + name if ok else 'FAIL %s: %s' % (name, why), flush=True)

    for point in sorted({point for point, _ in table.rows}):
        if not arguments.write and not table.is_there(point):
            say(False, 'the row ' + point, 'the source has no such function')
    with tempfile.TemporaryDirectory() as scratch, \
            concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        driver = Driver(os.path.abspath(arguments.build), scratch)
        jobs, always, reached = list_jobs(driver, arguments.quick)
        jobs = [job for job in jobs if all(word in str(job) for word in arguments.filter.split())]
        if arguments.filter and not jobs:
            parser.exit(2, "answers.py: no point has all the words of --filter '%s'\n" % arguments.filter)
        runs = {pool.submit(driver.judge, 'run%d' % n, job): job for n, job in enumerate(jobs)}
        for done in concurrent.futures.as_completed(runs):
            job, (fired, what) = runs[done], done.result()
            if not fired:
                continue
            if arguments.write and '!' not in what:
                table.add(job.point, job.error, what)
            # A point that is seldom reached may be missing, if nobody sees it fail.
            allowed = table.allows(job.point, job.error, what) or \
                what == 'as natively' and job.point not in always
            say(allowed, str(job), what)
    if arguments.write:
        table.write()
    missing = ', '.join(table.missing_faults(reached))
    say(not missing, 'each fault point has a row', missing)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
