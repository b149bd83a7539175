# SPDX-License-Identifier: MIT
"""driver/verdict.py - judges the ratios of the rounds by the rule of "fiberize bench"."""
import subprocess

from driver.place import ROOT

RULE = [word for name in ("median.awk", "verdict.awk", "programs/driver/judge.awk")
        for word in ("-f", f"{ROOT}/scripts/bench/{name}")]


def judge(ratios, better_is_more):
    """Returns (median, low, high, word); word is faster, slower, no difference, or undecided."""
    line = " ".join([str(int(better_is_more)), *(repr(float(r)) for r in ratios)])
    out = subprocess.run(["awk", *RULE], input=line + "\n", text=True, stdout=subprocess.PIPE,
                         check=True).stdout
    middle, low, high, word = out.strip().split(" ", 3)
    return float(middle), float(low), float(high), word
