# SPDX-License-Identifier: MIT
"""64 threads that read 4 KB from the page cache."""
from driver import fio, loads

NEEDS = "fio"
prepare, figures = fio.prepare, loads.fio_figures


def command(place, _side):
    return fio.command(place, "--thread", "--ioengine=psync", "--rw=randread", "--numjobs=64")
