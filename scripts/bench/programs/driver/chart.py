# SPDX-License-Identifier: MIT
"""driver/chart.py - one chart of the ratios of all workloads, drawn by gnuplot."""
import os
import shutil
import subprocess
import tempfile

from driver.place import ROOT
from driver.report import compare

FIGURES = [("per_s", "operations/s"), ("cpu_us", "CPU/operation"), ("p99_us", "p99")]


def available():
    """Is gnuplot installed?"""
    return shutil.which("gnuplot") is not None


def rows(all_samples):
    """Yields lines LABEL, ratio, low, high, verdict, separated by tabs (ratios.gp)."""
    for name, samples in all_samples.items():
        for side in [s for s in samples[0] if s != "native"]:
            found = compare(samples, side)
            for key, title in FIGURES:
                if key in found:
                    _, _, ratio, low, high, word = found[key]
                    label = name if side == "fiberize" else f"{name} ({side})"
                    yield f"{label}: {title}\t{ratio}\t{low}\t{high}\t{word}\n"


def save(path, all_samples):
    """Write the chart as SVG. An old file is replaced only when the new one is complete."""
    lines = list(rows(all_samples))
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as data:
        data.writelines(lines)
        data.flush()
        subprocess.run(["gnuplot", "-d", "-c", f"{ROOT}/scripts/bench/report/ratios.gp", data.name,
                        path + ".new", "ratios", "fiberize / native: the median of the ratios and its interval",
                        str(len(lines)), "860"], check=True)
    os.rename(path + ".new", path)
