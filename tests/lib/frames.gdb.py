# SPDX-License-Identifier: MIT
#
# tests/lib/frames.gdb.py - gdb's frames in the form in which "fiberize bt --each" prints its own:
#
#	frames			from the selected one on
#	frames-of-threads	of all kernel threads, each with its name
#
# A frame that gdb concludes from tail calls has (tail) in place of its address.
"""Commands of gdb that print frames as "fiberize bt" does."""

import gdb


class Frames(gdb.Command):
    """The selected frame and those that called it."""

    def __init__(self):
        super().__init__('frames', gdb.COMMAND_STACK)

    def invoke(self, _argument, _from_tty):
        """As gdb calls it."""
        frame = gdb.selected_frame()
        while frame is not None:
            if frame.type() == gdb.SIGTRAMP_FRAME:
                name = '__restore_rt'
            else:
                name = frame.name() or '??'
            sal = frame.find_sal()
            place = ''
            if sal.symtab is not None:
                place = ' at %s:%d' % (sal.symtab.filename, sal.line)
            elif gdb.solib_name(frame.pc()):
                place = ' in ' + gdb.solib_name(frame.pc())
            address = '(tail)' if frame.type() == gdb.TAILCALL_FRAME else '%#x' % frame.pc()
            print('  #%-3d %s %s%s' % (frame.level(), address, name, place))
            frame = frame.older()


class FramesOfThreads(gdb.Command):
    """The frames of all kernel threads."""

    def __init__(self):
        super().__init__('frames-of-threads', gdb.COMMAND_STACK)

    def invoke(self, _argument, _from_tty):
        """As gdb calls it."""
        for thread in gdb.selected_inferior().threads():
            thread.switch()
            gdb.newest_frame().select()
            print('thread %d "%s"' % (thread.ptid[1], thread.name))
            gdb.execute('frames')


Frames()
FramesOfThreads()
