# SPDX-License-Identifier: MIT
"""8 threads that read and write 4 KB of a file in the page cache, in turn."""
from driver import loads

NEEDS = "fio"
QUICK = True
figures = loads.fio_figures
RW, BLOCK, THREADS, MORE = "randrw", "4k", 8, ()


def prepare(place):
    place.run("fio", "--name=x", "--filename=" + place.file("data"), "--size=256m", "--rw=write",
              "--bs=1m")


def command(place, _side):
    return ["fio", "--thread", "--name=x", "--filename=" + place.file("data"), "--size=256m",
            "--ioengine=psync", "--invalidate=0", f"--rw={RW}", f"--bs={BLOCK}",
            f"--numjobs={THREADS}", "--time_based", f"--runtime={max(1, round(place.seconds))}",
            "--group_reporting", "--output-format=json", *MORE]
