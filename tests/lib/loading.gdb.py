# SPDX-License-Identifier: MIT
#
# tests/lib/loading.gdb.py - for gdb: run the program from its first instruction to its first thread, and at
# each change of its mappings on the way run a command, with the process id as its last word.
#
# COMMAND: a program with its arguments.  LIBRARY: to be preloaded into the program.
import os

import gdb

for setting in ("pagination off", "confirm off", "startup-with-shell off",
                "environment LD_PRELOAD " + os.environ["LIBRARY"]):
    gdb.execute("set " + setting)
gdb.execute("starti", to_string=True)
# What changes the mappings.
gdb.execute("catch syscall mmap mprotect munmap", to_string=True)
inferior = gdb.selected_inferior()
while inferior.pid and len(inferior.threads()) == 1:
    gdb.execute(f"shell {os.environ['COMMAND']} {inferior.pid}")
    gdb.execute("continue", to_string=True)
gdb.execute("kill")
