# SPDX-License-Identifier: MIT
"""driver/report.py - the table for people and the JSON for programs, from the same samples."""
import json
import os
import subprocess
from statistics import median

from driver.place import ROOT
from driver.verdict import judge

COLUMNS = [("per_s", "operations/s", True), ("cpu_us", "CPU us/operation", False),
           ("p50_us", "p50 us", False), ("p99_us", "p99 us", False), ("p999_us", "p99.9 us", False),
           ("switches", "switches/operation", False), ("peak_kb", "peak KB", False)]


def machine():
    """Lines that tell on which machine and commit the figures were measured."""
    out = subprocess.run(["scripts/bench/machine.sh"], cwd=ROOT, stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    return [line.removeprefix("# ") for line in out.splitlines()] + \
        [f"load average {os.getloadavg()[0]:.1f}"]


def compare(samples, side):
    """Compare a side with native: {figure: (native median, median, ratio, low, high, verdict)}."""
    result = {}
    for name, _, more in COLUMNS:
        pairs = [(r["native"][name], r[side][name]) for r in samples
                 if name in r["native"] and name in r[side]]
        # There is no ratio to 0, as when a native run has no context switch.
        ratios = [b / a for a, b in pairs if a > 0]
        if ratios and len(ratios) == len(samples):
            result[name] = (median(a for a, _ in pairs), median(b for _, b in pairs),
                            *judge(ratios, more))
    return result


def show(name, samples):
    """Print the table of one workload."""
    for side in [s for s in samples[0] if s != "native"]:
        print(f"\n{name}, {side}: {len(samples)} rounds")
        print(f"  {'':20}{'native':>12}{side:>12}  ratio")
        for key, (a, b, r, low, high, word) in compare(samples, side).items():
            title = next(t for k, t, _ in COLUMNS if k == key)
            said = word if key in ("per_s", "cpu_us") else ""
            print(f"  {title:20}{a:12.4g}{b:12.4g}  {r:.2f} ({low:.2f}..{high:.2f}) {said}",
                  flush=True)


def summary(all_samples, missing, failed):
    """Print one line for each workload."""
    print(f"\n{'workload':28}{'side':10}{'operations/s':>26}{'CPU/operation':>26}  verdict")
    for name, samples in all_samples.items():
        for side in [s for s in samples[0] if s != "native"]:
            c = compare(samples, side)
            cells = "".join(f"{r:10.2f} ({low:.2f}..{high:.2f})"
                            for _, _, r, low, high, _ in (c["per_s"], c["cpu_us"]))
            print(f"{name:28}{side:10}{cells}  {c['per_s'][5]}; CPU {c['cpu_us'][5]}")
    for name, tools in missing.items():
        print(f"{name:28}not run: {' '.join(tools)} not installed")
    for name, why in failed.items():
        print(f"{name:28}failed: {why}")


def save(path, all_samples, missing, failed, about):
    """Write the JSON. An old file is replaced only when the new one is complete."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump({"about": about, "samples": all_samples, "missing": missing, "failed": failed},
                  f, indent=1)
    os.rename(path + ".new", path)
