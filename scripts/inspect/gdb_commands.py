# SPDX-License-Identifier: MIT
#
# scripts/inspect/gdb_commands.py - gdb's commands for the threads under libfiberize.so; gdb.py, which goes
# before this in the file that the build makes, has the threads.
#
#	info fibers [TID...]
#	fiber [TID | off]
#	fiber apply {all | TID...} COMMAND
#	fiber locks
#
# Nothing changes in the process.  To show a thread that does not run, an unwinder pretends that the thread's
# saved context is the caller of the innermost frame of the kernel thread that gdb has selected; a frame
# filter leaves that innermost frame out of backtraces.

from types import SimpleNamespace

import gdb.unwinder
from gdb.FrameDecorator import FrameDecorator

# gdb's names of the registers, in the order of their DWARF numbers.
FZ_X86_64 = 'rax rdx rcx rbx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 rip'.split()
FZ_AARCH64 = ['x%d' % n for n in range(31)] + ['sp']

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
                waiters.setdefault((fiber.wait(by_tid), fiber.lock()), []).append(fiber)
        for (wait, _), group in sorted(waiters.items()):
            print('%s: %s' % (wait, ', '.join(f.label() for f in group)))
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
