# SPDX-License-Identifier: MIT
#
# tests/lib/loading.gdb.py - for gdb: run the program from its first instruction to its first thread, and at
# each system call on the way run the tool's commands on it.
#
# TOOL: the launcher; COMMANDS: words, and commands apart by ";"; LIBRARY: to be preloaded into the program.
# Prints each answer once: the command, its exit status, what it says, and how often.
import collections
import os
import subprocess

import gdb

for setting in ("pagination off", "confirm off", "startup-with-shell off",
                "environment LD_PRELOAD " + os.environ["LIBRARY"]):
    gdb.execute("set " + setting)
gdb.execute("starti", to_string=True)
gdb.execute("catch syscall", to_string=True)
answers = collections.Counter()
inferior = gdb.selected_inferior()
while inferior.pid and len(inferior.threads()) == 1:
    pid = str(inferior.pid)
    for command in os.environ["COMMANDS"].split(";"):
        run = subprocess.run([os.environ["TOOL"], *command.split(), pid], stdin=subprocess.DEVNULL,
                             capture_output=True, text=True)
        said = "an answer" if run.stdout and run.returncode == 0 else run.stderr.strip()
        answers[f"{command}: {run.returncode}: {said.replace(pid, 'PID')}"] += 1
    gdb.execute("continue", to_string=True)
for answer, count in sorted(answers.items()):
    print(f"answer: {answer}")
gdb.execute("kill")
