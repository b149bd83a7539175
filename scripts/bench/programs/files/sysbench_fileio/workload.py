# SPDX-License-Identifier: MIT
"""sysbench fileio: 8 threads read and write 4 KB of files in the page cache."""
from driver import loads

NEEDS = "sysbench"
figures = loads.sysbench_figures
COMMON = ["sysbench", "fileio", "--file-total-size=128M", "--file-num=8", "--file-block-size=4096",
          "--file-test-mode=rndrw", "--file-fsync-freq=0", "--threads=8", "--percentile=99"]


def prepare(place):
    place.run(*COMMON, "prepare")


def command(place, _side):
    return [*COMMON, f"--time={max(1, round(place.seconds))}", "run"]
