# SPDX-License-Identifier: MIT
#
# scripts/inspect/gdb.py - gdb commands for the threads under libfiberize.so, of a process or a core file:
#
#	info fibers [TID...]
#	fiber [TID | off]
#	fiber apply {all | TID...} COMMAND
#	fiber locks
#
# gdb loads this file with the library if the file is installed as libfiberize.so-gdb.py where gdb allows it.
# The library may be stripped, so records are read by the description in it (runtime/inspect/describe.h).
# Nothing changes in the process.  To show a thread that does not run, an unwinder pretends that the thread's
# saved context is the caller of the innermost frame of the kernel thread that gdb has selected; a frame
# filter leaves that innermost frame out of backtraces.
# All Python scripts in gdb share one namespace, so all names here begin with fz_, Fz or FZ_.

import re
import struct
from types import SimpleNamespace

import gdb
import gdb.unwinder
from gdb.FrameDecorator import FrameDecorator

FZ_NOTE_OWNER, FZ_NOTE_DESCRIPTION = b'fiberize\0', 1		# of runtime/inspect/describe.h
FZ_MAGIC, FZ_VERSION, FZ_REGISTER, FZ_WORD = b'fiberize', 1, 3, 4

# gdb's names of the registers, in the order of their DWARF numbers.
FZ_X86_64 = 'rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip'.split()
FZ_AARCH64 = ['x%d' % n for n in range(31)] + ['sp']

# Characters that are not printed, as in scripts/process/text.c; bytes that are not UTF-8 are the last of them.
FZ_REFUSED = re.compile('[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]')

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

def fz_by_note(notes, size):
    """Find the library's note among these ELF notes. Returns the address of the description in it, or None."""
    at = 0
    while size - at > 12:
        name_size, content_size, kind = struct.unpack('<III', fz_read(notes + at, 12))
        content = notes + at + 12 + (name_size + 3 & ~3)
        if kind == FZ_NOTE_DESCRIPTION and name_size == len(FZ_NOTE_OWNER) and content_size == 8 and \
                fz_read(notes + at + 12, name_size) == FZ_NOTE_OWNER:
            return content + struct.unpack('<q', fz_read(content, 8))[0]
        at = content + (content_size + 3 & ~3) - notes
    return None

def fz_in_object(base):
    """The address of the description in the ELF object at base, or None."""
    try:
        header = fz_read(base, 64)
        if header[:5] != b'\x7fELF\x02':
            return None
        offset, = struct.unpack_from('<Q', header, 32)
        size, count = struct.unpack_from('<HH', header, 54)
        for i in range(count):
            kind, _, _, address, _, _, room = struct.unpack_from(
                '<IIQQQQQ', fz_read(base + offset + i * size, 56))
            found = fz_by_note(base + address, room) if kind == 4 else None
            if found:
                return found
    except gdb.MemoryError:
        pass
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
        self.at, self.entries, self.registers, self.words = at, {}, [], {}
        for i in range(count):
            entry = fz_read(at + 24 + i * entry_size, 40)
            name, value, size, kind = struct.unpack('<24sQII', entry)
            name = name.rstrip(b'\0').decode()
            if kind == FZ_REGISTER:
                self.registers.append((int(name), value))
            elif kind == FZ_WORD:
                self.words[value] = name
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

    def is_whole(self):
        """Is the library's memory there?  If a core file lacks it, gdb reads the library's file, not relocated."""
        try:
            return abs(self.value('started') - self.at) < 1 << 26 and bool(fz_read(self.value('started'), 1))
        except gdb.MemoryError:
            return False

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
        found = next(filter(None, map(fz_in_object, fz_first_pages())), None)
        if found is None:
            raise gdb.GdbError('libfiberize.so is not in this process.')
        fz_libraries[key] = FzLibrary(found)
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
        self.kernel_tid = 0
        if self.wired or not self.parked and not self.sp:
            self.sp = 0
            self.kernel_tid = lib.field_at('carrier_tid', field('carrier'))

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

    def state(self, by_tid):
        """What the thread does or waits for, for people."""
        kind = self.kind()
        if kind is None:
            if self.kernel_tid:
                return '%s on kernel thread %d' % ('wired,' if self.wired else 'runs',
                                                   self.kernel_tid)
            return 'queued'
        text = 'waits: ' + self.lib.words.get(self.waits_for, kind)
        if kind == 'request':
            pin = self.lib.field_at('op_pin', self.object)
            text += ' of descriptor %d' % (self.lib.field_at('pin_number', pin) if pin else
                                           self.lib.field_at('op_fd', self.object))
        elif kind == 'thread':
            other = by_tid.get(self.lock()[1])
            return text + (', of ' + other.label() if other else '')
        elif kind not in FZ_WITHOUT_ADDRESS:
            text += ' ' + fz_symbol(self.lock()[0])
        owner = self.lock()[1]
        if owner:
            text += ', held by ' + (by_tid[owner].label() if owner in by_tid else '%d' % owner)
        return text

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

# ---- showing a thread that does not run

def fz_names(architecture):
    """gdb's names of the registers of this architecture, in the order of their DWARF numbers."""
    return FZ_AARCH64 if 'aarch64' in architecture.name() else FZ_X86_64

def fz_place(frame, architecture):
    """The sp and pc of a frame. Functions inlined in it are frames with equal sp and pc."""
    sp, pc = ('sp', 'pc') if fz_names(architecture) is FZ_AARCH64 else ('rsp', 'rip')
    return int(frame.read_register(sp)), int(frame.read_register(pc))

class FzUnwinder(gdb.unwinder.Unwinder):
    """Makes a thread's saved context the caller of the innermost frame of the selected kernel thread."""

    def __init__(self):
        super().__init__('fiberize')
        self.fiber, self.thread, self.innermost = None, None, None
        gdb.events.cont.connect(lambda _: self.show(None))
        gdb.events.exited.connect(lambda _: self.show(None))

    def show(self, fiber):
        """Show this thread's context, or with None what gdb shows without this unwinder."""
        if self.fiber is not None:
            self.fiber = None
            gdb.invalidate_cached_frames()
        if fiber is not None:
            frame = gdb.newest_frame()
            self.innermost = fz_place(frame, frame.architecture())
            self.thread, self.fiber = gdb.selected_thread().ptid, fiber
            gdb.invalidate_cached_frames()

    def active(self):
        """Is a context shown for the selected kernel thread?"""
        thread = gdb.selected_thread()
        return self.fiber is not None and thread is not None and thread.ptid == self.thread

    def hides(self, frame):
        """Is this frame the innermost one of the kernel thread, which must not be seen?"""
        return self.active() and fz_place(frame, frame.architecture()) == self.innermost

    def __call__(self, pending):
        if not self.hides(pending):
            return None
        fiber, word = self.fiber, gdb.lookup_type('unsigned long')
        lib, names = fiber.lib, fz_names(pending.architecture())
        values = {n: int.from_bytes(fz_read(fiber.sp + at, 8), 'little') for n, at in lib.registers}
        pc, sp = values[lib.value('frame_pc')], fiber.sp + lib.value('frame_size')
        values[lib.value('frame_sp')] = sp
        info = pending.create_unwind_info(SimpleNamespace(sp=gdb.Value(fiber.sp).cast(word),
                                                          pc=gdb.Value(pc).cast(word)))
        for number, value in values.items():
            info.add_saved_register(names[number], gdb.Value(value).cast(word))
        if names is FZ_AARCH64:
            info.add_saved_register('pc', gdb.Value(pc).cast(word))
        return info

class FzFrame(FrameDecorator):
    """A frame with the function name that gdb prints when there is no frame filter."""

    def function(self):
        if self.inferior_frame().type() in (gdb.SIGTRAMP_FRAME, gdb.DUMMY_FRAME):
            return super().function()
        return self.inferior_frame().name() or '??'

class FzFilter:
    """Leaves the kernel thread's innermost frame out of the backtrace of another thread."""

    def __init__(self, unwinder):
        self.name, self.priority, self.unwinder = 'fiberize', 1000, unwinder
        gdb.frame_filters[self.name] = self

    @property
    def enabled(self):
        """If no thread's saved context is shown, there is no frame to hide, and gdb needs no filter."""
        return self.unwinder.active()

    def filter(self, frames):
        return (FzFrame(frame) for frame in frames if not self.unwinder.hides(frame.inferior_frame()))

fz_shown = FzUnwinder()
gdb.unwinder.register_unwinder(None, fz_shown, True)
FzFilter(fz_shown)

def fz_select(fiber):
    """Select the thread and its newest frame. Returns False if it has no frame or has ended."""
    fz_shown.show(fiber if fiber.sp else None)
    if not fiber.sp:
        threads = gdb.selected_inferior().threads()
        thread = next((t for t in threads if t.ptid[1] == fiber.kernel_tid), None)
        if thread is None:
            return False
        thread.switch()
    frame = gdb.newest_frame()
    while frame is not None and fz_shown.hides(frame):
        frame = frame.older()
    if frame is not None:
        frame.select()
    return frame is not None

def fz_select_program():
    """Select the newest frame that is not in the library, if there is one."""
    frame = gdb.selected_frame()
    while frame is not None and 'libfiberize' in (gdb.solib_name(frame.pc()) or ''):
        frame = frame.older()
    if frame is not None:
        frame.select()

# ---- commands

class FzInfo(gdb.Command):
    """The threads of a process that runs under libfiberize.so, and what they wait for.
Usage: info fibers [TID...]"""

    def invoke(self, argument, _from_tty):
        by_tid = fz_all()
        current = fz_shown.fiber.tid if fz_shown.active() else None
        for fiber in fz_chosen(argument.split(), by_tid) or by_tid.values():
            mark = '*' if fiber.tid == current else ' '
            print(mark, fiber.label(), fiber.state(by_tid))

class FzCommand(gdb.Command):
    """Select a thread that runs under libfiberize.so, as "info fibers" lists them.
Usage: fiber [TID | off]
The frames of the thread follow the innermost one of a kernel thread, so their numbers begin
with 1 or more.  "fiber off", and letting the process run, lead back to the kernel thread.
Without TID: which one is selected."""

    def invoke(self, argument, _from_tty):
        word = argument.strip()
        if word == 'off':
            fz_shown.show(None)
        elif not word:
            print('[fiber %s]' % fz_shown.fiber.label() if fz_shown.active() else '[a kernel thread]')
        else:
            fiber = fz_chosen([word], fz_all())[0]
            if not fz_select(fiber):
                raise gdb.GdbError('%s: has no frames.' % word)
            print('[Switching to fiber %s]' % fiber.label())
            fz_select_program()
            gdb.execute('frame')

class FzApply(gdb.Command):
    """Apply a command to threads that run under libfiberize.so.
Usage: fiber apply {all | TID...} COMMAND"""

    def invoke(self, argument, _from_tty):
        match = re.match(r'(all\s|(?:(?:0x[0-9a-f]+|\d+)\s+)+)\s*(\S.*)', argument.strip())
        if not match:
            raise gdb.GdbError('Usage: fiber apply {all | TID...} COMMAND')
        by_tid, words = fz_all(), match.group(1).split()
        wanted = by_tid.values() if words == ['all'] else fz_chosen(words, by_tid)
        before, thread, frame = fz_shown.fiber, gdb.selected_thread(), gdb.selected_frame().level()
        try:
            for fiber in wanted:
                print('\nFiber %s, %s:' % (fiber.label(), fiber.state(by_tid)))
                if fz_select(fiber):
                    gdb.execute(match.group(2))
                thread.switch()
        finally:
            fz_shown.show(None)
            thread.switch()
            fz_shown.show(before)
            gdb.execute('frame level %d' % frame, to_string=True)

class FzLocks(gdb.Command):
    """The locks and threads that threads under libfiberize.so wait for, and deadlocks.
Usage: fiber locks"""

    def invoke(self, _argument, _from_tty):
        by_tid, waiters = fz_all(), {}
        for fiber in by_tid.values():
            if fiber.kind() and fiber.kind() not in FZ_WITHOUT_ADDRESS:
                waiters.setdefault((fiber.state(by_tid), fiber.lock()), []).append(fiber)
        for (state, _), group in sorted(waiters.items()):
            print('%s: %s' % (state[len('waits: '):], ', '.join(f.label() for f in group)))
        for circle in fz_circles(by_tid):
            print('deadlock: %s' % ' -> '.join(by_tid[tid].label() for tid in circle + circle[:1]))

def fz_circles(by_tid):
    """Deadlocks: lists of tids of threads that wait for each other, all without a deadline."""
    visited = set()
    for start in by_tid:
        at, way = start, []
        while at in by_tid and at not in visited and \
                not by_tid[at].lib.field_at('fiber_timer', by_tid[at].address):
            visited.add(at)
            way.append(at)
            at = by_tid[at].lock()[1] if by_tid[at].parked else 0
        if at in way:
            yield way[way.index(at):]

FzInfo('info fibers', gdb.COMMAND_STATUS)
FzCommand('fiber', gdb.COMMAND_STACK, prefix=True)
FzApply('fiber apply', gdb.COMMAND_STACK)
FzLocks('fiber locks', gdb.COMMAND_STATUS)
