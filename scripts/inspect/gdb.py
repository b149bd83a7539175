# SPDX-License-Identifier: MIT
#
# scripts/inspect/gdb.py - for gdb: the threads under libfiberize.so, of a process or a core file, and what
# they wait for.
#
# The build makes one file of this and gdb_commands.py, which has the commands.  gdb loads that file with the
# library if it is installed as libfiberize.so-gdb.py where gdb allows it.
# The library may be stripped, so records are read by the description in it (runtime/inspect/describe.h).
# All Python scripts in gdb share one namespace, so all names here begin with fz_, Fz or FZ_.

import re
import select
import signal
import struct
import time

import gdb

FZ_NOTE_OWNER, FZ_NOTE_DESCRIPTION = b'fiberize\0', 1		# of runtime/inspect/describe.h
FZ_SVC = b'\x01\0\0\xd4'		# aarch64's instruction for a system call
FZ_MAGIC, FZ_VERSION, FZ_REGISTER, FZ_WORD, FZ_REQUEST = b'fiberize', 1, 3, 4, 5

# Characters that are not printed, as in scripts/process/text.c; the last of them are bytes that are not UTF-8.
FZ_REFUSED = re.compile('[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]')

FZ_POLL_READ, FZ_POLL_WRITE = select.POLLIN | select.POLLRDNORM, select.POLLOUT | select.POLLWRNORM

# Kinds of waits (the names of the entries for_... without for_) for which no address is shown.
FZ_WITHOUT_ADDRESS = ('time', 'request', 'ready', 'signal', 'runtime', 'end')

def fz_read(address, size):
    """Read size bytes of the process. Raises gdb.MemoryError if that fails."""
    return bytes(gdb.selected_inferior().read_memory(address, size))

def fz_output(command):
    """What a command of gdb prints."""
    try:
        return gdb.execute(command, to_string=True)
    except UnicodeDecodeError as error:
        # The name of a file may be anything.
        return error.object.decode(errors='replace')

# ---- the description that the library carries

def fz_first_pages():
    """The addresses at which the first page of a file is mapped."""
    line = re.compile(r'\s*(0x\w+)\s+0x\w+\s+0x\w+\s+0x0\s+(?:[-rwxps]{4,5}\s+)?/')
    for text in fz_output('info proc mappings').splitlines():
        match = line.match(text)
        if match:
            yield int(match.group(1), 16)

def fz_notes(base):
    """The notes of the ELF object at base: owner, kind, and the address and size of the content."""
    header = fz_read(base, 64)
    if header[:5] != b'\x7fELF\x02':
        return
    offset, = struct.unpack_from('<Q', header, 32)
    size, count = struct.unpack_from('<HH', header, 54)
    for i in range(count):
        part, _, _, address, _, _, room = struct.unpack_from('<IIQQQQQ', fz_read(base + offset + i * size, 56))
        at, end = base + address, base + address + room
        while part == 4 and end - at > 12:
            name_size, content_size, kind = struct.unpack('<III', fz_read(at, 12))
            content = at + 12 + (name_size + 3 & ~3)
            yield fz_read(at + 12, min(name_size, 16)), kind, content, content_size
            at = content + (content_size + 3 & ~3)

def fz_in_object(base):
    """The address of the description in the ELF object at base, or None."""
    try:
        for owner, kind, at, size in fz_notes(base):
            if (owner, kind, size) == (FZ_NOTE_OWNER, FZ_NOTE_DESCRIPTION, 8):
                return at + struct.unpack('<q', fz_read(at, 8))[0]
    except gdb.MemoryError:
        pass
    return None

def fz_build_id(base):
    """The build id of the ELF object at base in hexadecimal, or None."""
    try:
        return next((fz_read(at, size).hex() for owner, kind, at, size in fz_notes(base)
                     if (owner, kind) == (b'GNU\0', 3)), None)
    except gdb.MemoryError:
        return None

class FzLibrary:
    """The description of the library in the process."""

    def __init__(self, at):
        magic, version, entry_size, count, _ = struct.unpack('<8sIIII', fz_read(at, 24))
        if magic != FZ_MAGIC:
            raise gdb.GdbError('libfiberize.so is being loaded, or its description is damaged.')
        if version != FZ_VERSION:
            raise gdb.GdbError('libfiberize.so describes itself in version %d, these commands read '
                               '%d: use those of that library.' % (version, FZ_VERSION))
        self.at, self.entries, self.registers, self.words, self.requests = at, {}, [], {}, {}
        for i in range(count):
            entry = fz_read(at + 24 + i * entry_size, 40)
            name, value, size, kind = struct.unpack('<24sQII', entry)
            name = name.rstrip(b'\0').decode()
            if kind == FZ_REGISTER:
                self.registers.append((int(name), value))
            elif kind == FZ_WORD:
                self.words[value] = name
            elif kind == FZ_REQUEST:
                self.requests[value] = name
            else:
                self.entries[name] = (value, size)
        self.kinds = {value: name[4:] for name, (value, _) in self.entries.items()
                      if name.startswith('for_')}

    def value(self, name):
        """The value of an entry: an offset, address or number."""
        if name not in self.entries:
            raise gdb.GdbError('libfiberize.so does not describe "%s": use the commands of that '
                               'library.' % name)
        return self.entries[name][0]

    def field(self, name, record):
        """The value of a field in a record, which was read before."""
        offset, size = self.value(name), min(self.entries[name][1], 8)
        return int.from_bytes(record[offset:offset + size], 'little')

    def field_at(self, name, address):
        """The value of a field of the record at this address; 0 if it cannot be read."""
        at = address + self.value(name)
        try:
            return int.from_bytes(fz_read(at, min(self.entries[name][1], 8)), 'little')
        except gdb.MemoryError:
            return 0

    def text(self, name):
        """The text that is a root; empty if it cannot be read."""
        try:
            at, size = self.entries.get(name, (0, 0))
            return fz_clean(fz_read(at, size).split(b'\0')[0].decode(errors='surrogateescape')) if size else ''
        except gdb.MemoryError:
            return ''

    def is_whole(self):
        """Is the library's memory there?  If a core file lacks it, gdb reads the library's file, not relocated."""
        try:
            return abs(self.value('started') - self.at) < 1 << 26 and bool(fz_read(self.value('started'), 1))
        except gdb.MemoryError:
            return False

fz_checked = set()		# processes of which was said whether gdb has the file of their library

def fz_check_file(lib, build_id):
    """Warn if the file from which gdb has the library's symbols is another build than the library in the process."""
    process = gdb.selected_inferior()
    key = (process.num, process.pid, build_id)
    if build_id is None or key in fz_checked:
        return
    fz_checked.add(key)
    try:
        gdb.lookup_objfile(build_id, by_build_id=True)
    except ValueError:
        gdb.write('warning: libfiberize.so %s in the process has build id %s, and gdb has no file of that build: it was '
                  'replaced or removed since. "info fibers" is right; backtraces may be wrong: use "fiberize bt".\n'
                  % (lib.text('version'), build_id), gdb.STDERR)

fz_libraries = {}		# from process to FzLibrary; emptied when the loaded objects change
for event in (gdb.events.new_objfile, gdb.events.clear_objfiles, gdb.events.exited):
    event.connect(lambda _: fz_libraries.clear())

def fz_library():
    """The library of the selected process."""
    process = gdb.selected_inferior()
    if not process.threads():
        raise gdb.GdbError('There is no process.')
    key = (process.num, process.pid)
    if key not in fz_libraries:
        base, found = next(((b, at) for b in fz_first_pages() if (at := fz_in_object(b))), (0, None))
        if found is None:
            raise gdb.GdbError('libfiberize.so is not in this process.')
        fz_libraries[key] = FzLibrary(found)
        fz_check_file(fz_libraries[key], fz_build_id(base))
    return fz_libraries[key]

# ---- threads

def fz_clean(text):
    """This text, which the program chose, with a question mark for each byte that no terminal should get."""
    return ''.join('?' * len(c.encode(errors='surrogateescape')) if FZ_REFUSED.match(c) else c for c in text)

class FzFiber:
    """A thread as the library sees it."""

    def __init__(self, lib, address, record):
        def field(name):
            return lib.field('fiber_' + name, record)
        self.lib, self.address = lib, address
        self.tid, self.sp = field('tid'), field('sp')
        self.ended = field('life') & (lib.value('life_ended') | lib.value('life_free'))
        self.next = field('next')
        at, size = lib.entries['fiber_name']
        self.name = record[at:at + size].split(b'\0')[0].decode(errors='surrogateescape')
        self.name = fz_clean(self.name)
        if not self.name and field('is_main'):
            self.name = 'main'
        wait = field('wait') & lib.value('wait_state_mask')
        self.wired = field('kind') == lib.value('kind_wired')
        self.parked = not self.wired and wait == lib.value('wait_parked')
        self.waits_for, self.object = field('waits_for'), field('object')
        self.signals, self.deadline = field('sigwait_set'), field('deadline') if field('timer') else None
        self.kernel_tid, self.carrier = 0, field('carrier')
        if self.wired or not self.parked and not self.sp:
            self.sp = 0
            self.kernel_tid = lib.field_at('carrier_tid', self.carrier)

    def label(self):
        """The tid and name of the thread, for people."""
        return '%d "%s"' % (self.tid, self.name) if self.name else '%d' % self.tid

    def kind(self):
        """The kind of its wait: the name of an entry for_... without for_; None if it does not wait."""
        if not self.parked:
            return None
        return self.lib.kinds.get(self.waits_for, '?')

    def lock(self):
        """What it waits for: its address, and the tid of its owner (0 if unknown)."""
        kind, lib = self.kind(), self.lib
        if kind == 'mutex':
            return self.object, lib.field_at('mutex_owner', self.object)
        if kind in ('read_lock', 'write_lock'):
            key = 'rwlock_read_key' if kind == 'read_lock' else 'rwlock_write_key'
            lock = self.object - lib.value(key)
            return lock, lib.field_at('rwlock_writer', lock)
        if kind == 'thread':
            other = self.object - lib.value('fiber_life')
            return other, lib.field_at('fiber_tid', other)
        return self.object, 0

    def calls(self):
        """Is it on a kernel thread in a call that may wait?"""
        lib = self.lib
        processor = lib.field_at('carrier_processor', self.carrier)
        return bool(lib.field_at('carrier_calls', self.carrier) & lib.value('call_bit') or processor and
                    lib.field_at('processor_owner', processor) == self.carrier | lib.value('owner_announced') or
                    fz_in_kernel(self.kernel_tid))

    def request(self):
        """The request that it waits for, for people."""
        def field(name):
            return self.lib.field_at('op_' + name, self.object)
        lib, opcode, fd = self.lib, field('opcode'), field('fd')
        word = lib.requests.get(opcode, 'request')
        if opcode == lib.value('request_futex'):
            return '%s %s' % (word, fz_symbol(field('address')))
        if opcode == lib.value('request_child') and field('length') < 3:	# waitid's P_ALL, P_PID, P_PGID
            group = '%s of process group %d' % (word, fd) if fd else word + ' of its own process group'
            return ('any ' + word, '%s %d' % (word, fd), group)[field('length')]
        ready = ''
        if word == 'poll':
            events = field('events')
            ready = ' to read' * bool(events & FZ_POLL_READ) + ' to write' * bool(events & FZ_POLL_WRITE)
        return '%s(%d)%s' % (word, lib.field_at('pin_number', field('pin')) if field('pin') else fd, ready)

    def descriptors(self):
        """The first descriptors that it waits for by poll() or select(), for people."""
        lib, fds, count = self.lib, [], self.lib.field_at('ready_count', self.object)
        try:
            at = lib.field_at('ready_fds', self.object)
            fds = [struct.unpack('<i', fz_read(at + 8 * i, 4))[0] for i in range(min(count, 3))]
        except gdb.MemoryError:
            pass
        return ' of %d:%s%s' % (count, ''.join(' (%d)' % fd for fd in fds), ' ...' if count > 3 else '')

    def until(self):
        """Its deadline, for people."""
        if self.deadline is None:
            return ''
        if gdb.selected_inferior().connection.type != 'native':
            return ', with a deadline'
        left = self.deadline / 1e9 - time.clock_gettime(time.CLOCK_MONOTONIC)
        # Time goes on while gdb has stopped the process.
        return ', for %.3f s more' % left if left >= 0 else ', until %.3f s ago' % -left

    def holders(self, by_tid):
        """Who holds the lock that it waits for, for people."""
        (lock, owner), joins = self.lock(), self.kind() == 'thread'
        word = ', of ' if joins else ', held by '
        if owner in by_tid:
            return word + by_tid[owner].label()
        if owner:
            return word + '%d%s' % (owner, '' if fz_may_live(owner, by_tid) else ', which has ended')
        readers = self.lib.field_at('rwlock_readers', lock) >> 3 if 'lock' in self.kind() else 0
        return ', held by %d reader%s' % (readers, '' if readers == 1 else 's') if readers else ''

    def state(self, by_tid):
        """What the thread does or waits for, for people."""
        if self.kind() is not None:
            return 'waits: ' + self.wait(by_tid) + self.until()
        if not self.kernel_tid:
            return 'queued'
        does = 'wired,' if self.wired else 'in a call' if self.calls() else 'runs'
        return '%s on kernel thread %d' % (does, self.kernel_tid)

    def wait(self, by_tid):
        """What the thread waits for, in the words of "fiberize ps"."""
        kind = self.kind()
        if kind == 'request':
            return self.request()
        text = self.lib.words.get(self.waits_for, kind)
        if kind == 'ready':
            text += self.descriptors()
        elif kind == 'signal':
            text += ''.join(' ' + fz_signal(n) for n in range(1, 65) if self.signals >> n - 1 & 1)
        elif kind not in FZ_WITHOUT_ADDRESS + ('thread',):
            text += ' ' + fz_symbol(self.lock()[0])
        if kind in ('mutex', 'read_lock', 'write_lock', 'thread'):
            text += self.holders(by_tid)
        return text

def fz_in_kernel(kernel_tid):
    """Is this kernel thread in a system call?  False if that is not known."""
    thread = next((t for t in gdb.selected_inferior().threads() if t.ptid[1] == kernel_tid), None)
    if thread is None:
        return False
    before, frame = gdb.selected_thread(), None
    try:
        frame = gdb.selected_frame()
        thread.switch()
        innermost = gdb.newest_frame()
        if 'aarch64' in innermost.architecture().name():
            # As in registers_call() of scripts/process/source.c; -4 is -EINTR.
            pc, x0 = (int(innermost.read_register(name)) for name in ('pc', 'x0'))
            return fz_read(pc, 4) == FZ_SVC or x0 in (-4, 2 ** 64 - 4) and fz_read(pc - 4, 4) == FZ_SVC
        return int(innermost.read_register('orig_rax').cast(gdb.lookup_type('long'))) >= 0
    except (gdb.error, ValueError):
        return False
    finally:
        if before is not None and before.is_valid():
            before.switch()
        if frame is not None and frame.is_valid():
            frame.select()

def fz_signal(number):
    """The name of a signal without SIG, or its number."""
    try:
        return signal.Signals(number).name[3:]
    except ValueError:
        return '%d' % number

def fz_may_live(tid, by_tid):
    """May a native thread have this tid?  In another PID namespace gdb has other tids than the library."""
    known = {thread.ptid[1] for thread in gdb.selected_inferior().threads()}
    own = [fiber.kernel_tid for fiber in by_tid.values() if fiber.kernel_tid]
    return tid in known or gdb.selected_inferior().pid not in by_tid and not known.intersection(own)

def fz_symbol(address):
    """An address as text, with the name of the variable there if it has one."""
    text = fz_output('info symbol %#x' % address)
    name, found, _ = text.partition(' in section')
    return '%#x (%s)' % (address, name) if found else '%#x' % address

def fz_all():
    """All threads of the process but the native ones: a dictionary by tid, in ascending order."""
    lib = fz_library()
    if gdb.selected_inferior().connection.type == 'core' and not lib.is_whole():
        raise gdb.GdbError('The core file is truncated: the memory of libfiberize.so is not in it.')
    if not lib.field_at('started', 0):
        print('No thread was made yet, so the library is dormant; "info threads" shows the program.')
        return {}
    at, size, seen, found = lib.field_at('registry', 0), lib.value('fiber_size'), set(), []
    while at and at not in seen:
        seen.add(at)
        try:
            fiber = FzFiber(lib, at, fz_read(at, size))
        except gdb.MemoryError:
            fiber = None
        if fiber is None or not fiber.tid:
            raise gdb.GdbError('The core file lacks the memory of the threads; gcore leaves it out. '
                               'Let the kernel write it: kill -ABRT PID ends the process.')
        if not fiber.ended:
            found.append(fiber)
        at = fiber.next
    return {fiber.tid: fiber for fiber in sorted(found, key=lambda fiber: fiber.tid)}

def fz_chosen(words, by_tid):
    """The threads with these tids."""
    try:
        return [by_tid[int(word, 0)] for word in words]
    except (ValueError, KeyError):
        raise gdb.GdbError('%s: no such fiber; see "info fibers".' % ' '.join(words)) from None
