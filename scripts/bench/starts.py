#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/bench/starts.py [COUNT] - what libfiberize-preload.so costs each program that starts.

Starts /bin/true COUNT times (1,000) in turn: without /etc/ld.so.preload, with the stub there and no profile, with a
profile for others, and with one that names it. Prints the medians of elapsed time and CPU time, of the differences in
turn, and of the ratios of CPU time in turn. Needs root: /etc is a copy in a mount namespace of its own.
"""
import os
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
STUB = os.environ.get('FZ_BUILD', ROOT + '/build') + '/libfiberize-preload.so'
FILE = '/etc/ld.so.preload'
PROFILE = '/etc/fiberize/starts.conf'
OTHERS = ''.join('[/opt/service-%d]\neverywhere = 1\nprocessors = 2\n' % i for i in range(20))
CASES = [('without', False, None), ('no profile', True, None), ('profiles of 20 others', True, OTHERS),
         ('named by a profile', True, '[true]\neverywhere = 1\n')]


def enter():
    """Start this script again in a mount namespace in which /etc is a copy."""
    if os.environ.get('FZ_STARTS') == 'inside':
        return
    script = ('d=$(mktemp -d) && mount -t tmpfs none "$d" && cp -a /etc/. "$d" && mount --bind "$d" /etc && '
              'umount "$d" && rmdir "$d" && exec "$@"')
    os.environ['FZ_STARTS'] = 'inside'
    os.execvp('unshare', ['unshare', '-m', 'sh', '-c', script, '-', sys.executable, os.path.abspath(__file__)] + sys.argv[1:])


def write(path, text):
    if text is None:
        if os.path.exists(path):
            os.unlink(path)
        return
    with open(path, 'w') as file:
        file.write(text)


def start():
    """Start /bin/true once. Returns elapsed time and CPU time, in microseconds."""
    begun = time.perf_counter_ns()
    pid = os.posix_spawn('/bin/true', ['true'], {'PATH': '/usr/bin:/bin'})
    _, status, usage = os.wait4(pid, 0)
    if status:
        sys.exit('starts.py: true ended with status %d' % status)
    return (time.perf_counter_ns() - begun) / 1000, (usage.ru_utime + usage.ru_stime) * 1e6


def main():
    enter()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    os.makedirs('/etc/fiberize', exist_ok=True)
    write(FILE, STUB + '\n')
    maps = subprocess.run(['cat', '/proc/self/maps'], stdout=subprocess.PIPE, check=True).stdout
    if STUB.encode() not in maps:
        sys.exit('starts.py: %s is not loaded' % STUB)
    samples = [[] for _ in CASES]
    for _ in range(count):
        for case, own in zip(CASES, samples):
            write(FILE, STUB + '\n' if case[1] else None)
            write(PROFILE, case[2])
            own.append(start())
    print('%-24s %12s %12s %16s %16s %12s' % ('/bin/true, us', 'elapsed', 'CPU', 'elapsed, more', 'CPU, more',
                                                    'CPU, times'))
    for case, own in zip(CASES, samples):
        more = [statistics.median(a[i] - b[i] for a, b in zip(own, samples[0])) for i in (0, 1)]
        times = statistics.median(a[1] / b[1] for a, b in zip(own, samples[0]))
        print('%-24s %12.0f %12.0f %16.0f %16.0f %12.2f' % (case[0], statistics.median(s[0] for s in own),
                                                            statistics.median(s[1] for s in own), more[0], more[1], times))


main()
