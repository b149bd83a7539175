# SPDX-License-Identifier: MIT
"""64 threads that read 4 KB from the disk; compared with fio's io_uring engine, 64 requests at once."""
from driver import fio, loads

NEEDS = "fio"
OPPONENTS = ["uring"]
prepare, figures = fio.prepare, loads.fio_figures


def command(place, side):
    if side == "uring":
        return fio.command(place, "--ioengine=io_uring", "--iodepth=64", "--direct=1",
                           "--rw=randread")
    return fio.command(place, "--thread", "--ioengine=psync", "--rw=randread", "--numjobs=64",
                       "--direct=1")
