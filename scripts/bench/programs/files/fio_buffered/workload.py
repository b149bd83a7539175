# SPDX-License-Identifier: MIT
"""8 threads that read and write 4 KB of a file in the page cache, in turn."""
from driver import fio, loads

NEEDS = "fio"
QUICK = True
prepare, figures = fio.prepare, loads.fio_figures


def command(place, _side):
    return fio.command(place, "--thread", "--ioengine=psync", "--rw=randrw", "--numjobs=8")
