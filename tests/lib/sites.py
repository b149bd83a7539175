#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tests/lib/sites.py - is it known of each place where the library makes a system call what happens if that fails?

    sites.py LIBRARY TABLE REASONS

A place is a call, the function, and the source file, as in TABLE (tests/ANSWERS.md). It needs a row there, or a
line "CALL,... FUNCTION FILE: REASON" in REASONS. No row is needed by calls and functions that answers.py leaves out,
wake-ups by futex, which deny.c never fails, and functions of liburing that the library never reaches. A call whose
number the compiler does not set just before it, and the source does not name there, is known by function and file
alone: one row or reason of the function is enough for it, and "?" names it. A line of REASONS for what has no such
place, or has a row, is refused.
"""
import os
import re
import subprocess
import sys

import answers

LIBURING = re.compile(r'(fz_)?_*io_uring_')
WAKES = re.compile(r'fz_sys_futex_wake|fz_futex_wake')


def instructions(library):
    """{address after a system call: (its name or None, the function's symbol)}; the symbols that are reached."""
    text = subprocess.run(['objdump', '-d', '--no-show-raw-insn', library], capture_output=True, text=True,
                          check=True).stdout
    names, calls, callees, before, symbol = answers.numbers(), {}, {}, [], None
    for line in text.split('\n'):
        begins = re.match(r'[0-9a-f]+ <(.*)>:$', line)
        if begins:
            before, symbol = [], begins[1]
            continue
        code = re.match(r' *([0-9a-f]+):\t(.*\S)', line)
        if not code:
            continue
        # A jump within a function has an offset behind the symbol.
        callees.setdefault(symbol, set()).update(re.findall(r'<([^>+]+)>', code[2]))
        if code[2] == 'syscall':
            calls['%x' % (int(code[1], 16) + 1)] = number_before(before, names), symbol
        before.append(code[2])
    reached, new = set(), {symbol for symbol in callees if not LIBURING.match(symbol)}
    while new:
        reached |= new
        new = {name for symbol in new for name in callees.get(symbol, ())} - reached
    return calls, reached


def number_before(before, names):
    for code in reversed(before):
        code = re.sub(r'\s+#.*', '', code)
        number = re.match(r'mov[a-z]* +\$0x([0-9a-f]+),%[er]ax$', code)
        if number:
            return names.get(int(number[1], 16), number[1])
        if re.match(r'xor +%eax,%eax$', code):
            return names[0]
        # Something else sets it, or another way leads here.
        if re.search(r'[ ,]%([er]?ax|al)$', code) or code.startswith(('call', 'syscall', 'jmp', 'ret')):
            return None
    return None


def chains(library, places):
    """{place: the functions that are inlined there, with "FILE:LINE"}"""
    text = subprocess.run(['addr2line', '-a', '-f', '-i', '-e', library] + ['0x' + place for place in places],
                          capture_output=True, text=True, check=True).stdout
    found = {}
    for part in re.split(r'^0x', text, flags=re.M)[1:]:
        lines = part.split('\n')
        found['%x' % int(lines[0], 16)] = list(zip(lines[1::2], lines[2::2]))
    return found


def number_in_source(chain):
    """The call that the source names where it calls fz_syscall..()."""
    for function, where in chain:
        path, line = where.split(' ')[0].rsplit(':', 1)
        if function.startswith('fz_syscall') or not line.isdigit() or not os.path.exists(path):
            continue
        with open(path) as source:
            near = source.readlines()[max(0, int(line) - 2):int(line) + 1]
        named = set(re.findall(r'__NR_(\w+)', ''.join(near)))
        return named.pop() if len(named) == 1 else None
    return None


def sites(library):
    """{(function file): its calls, None for one that is not known}"""
    calls, reached = instructions(library)
    functions, inlined, found = answers.source_places(library, sorted(calls)), chains(library, sorted(calls)), {}
    for place, (call, symbol) in calls.items():
        function = functions.get(place, '? ?')
        call = call or number_in_source(inlined[place])
        if call in answers.NEVER or function.startswith(answers.PROGRAMS) or \
                any(WAKES.match(name) for name, _ in inlined[place]) or \
                symbol not in reached:
            continue
        found.setdefault(function, set()).add(call)
    return found


def missing(found, rows, reasons):
    for function, calls in sorted(found.items(), key=lambda site: site[0].split()[::-1]):
        known, given = rows.get(function, set()), set(reasons.get(function, ()))
        lacks = {call for call in calls if call and call not in known}
        if None in calls and not known and not given:
            lacks.add('?')
        if lacks - given:
            yield '%s (%s) has neither row nor reason' % (function, ' '.join(sorted(lacks - given)))
        # One that is not known may be any of those that have a reason.
        for call in sorted(given - lacks if None not in calls else given & known):
            yield '%s (%s) has a reason, and %s' % (function, call, 'a row' if call in known else 'makes no such call')
    for function in sorted(set(reasons) - set(found)):
        yield function + ' has a reason, and makes no such call'


def main():
    if len(sys.argv) != 4:
        sys.exit('sites.py: three arguments are needed: library, table and reasons')
    library, table, path = sys.argv[1:]
    rows, reasons = {}, {}
    for point, _ in answers.Table(table).rows:
        call, function = point.split(' ', 1)
        rows.setdefault(function, set()).add(call)
    with open(path) as file:
        for line in file:
            parts = re.match(r'([^\s#]\S*) (\S+ \S+): (\S.*)\n', line)
            if parts:
                reasons.setdefault(parts[2], {}).update((call, parts[3]) for call in parts[1].split(','))
            elif not line.startswith('#'):
                sys.exit('sites.py: %s: no line "CALL,... FUNCTION FILE: REASON": %s' % (path, line.strip()))
    found = sites(library)
    said = list(missing(found, rows, reasons))
    for line in said:
        print('FAIL ' + line.replace(' has ', ': has ', 1))
    if len(found) < 100:
        print('FAIL the places of the library: only %d' % len(found))
    elif not said:
        is_open = [any(reason.startswith('Open: ') for reason in calls.values()) for calls in reasons.values()]
        print('PASS each of %d places of the library has a row or a reason; %d are open' % (len(found), sum(is_open)))
    return 1 if said or len(found) < 100 else 0


if __name__ == '__main__':
    sys.exit(main())
