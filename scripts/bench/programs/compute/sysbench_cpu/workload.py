# SPDX-License-Identifier: MIT
"""sysbench cpu: as many threads as there are CPUs, and nothing to wait for."""
import os

from driver import loads

NEEDS = "sysbench"
QUICK = True
figures = loads.sysbench_figures


def command(place, _side):
    return ["sysbench", "cpu", f"--threads={os.cpu_count()}", "--percentile=99",
            f"--time={max(1, round(place.seconds))}", "run"]
