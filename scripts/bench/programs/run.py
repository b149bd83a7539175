#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/bench/programs/run.py - measures well-known programs, natively and under fiberize in turn.

    run.py [--quick] [--seconds N] [--rounds N] [--most N] [--minutes N] [--against BUILD]
           [--json FILE] [--chart FILE] [--option WORD]... [--list] [WORKLOAD...]

A workload is a folder with a workload.py (README.md says what is in it).  A round runs each side
once, and each side is first in some rounds; ratios are taken within a round.  There are at least
--rounds and at most --most rounds, until CPU time per operation and operations per second have a
verdict.  When --minutes are over, the other workloads get only --rounds.  BUILD is the build
directory of another version, measured as a third side.  The chart (SVG) has the ratios of all
workloads.
Exit status: 0 if all workloads whose programs are installed could be run, 1 if one failed, 2 for
a bad command line.
"""
import argparse
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
# pylint: disable=wrong-import-position
from driver import chart, report, samples  # noqa: E402
from driver.place import ROOT, Failed, Place, load_workload  # noqa: E402


def find():
    """Find all workloads. Returns {name: folder}, sorted by folder."""
    found = {}
    for folder, _, files in os.walk(HERE):
        if "workload.py" in files:
            found[os.path.basename(folder)] = folder
    return dict(sorted(found.items(), key=lambda item: item[1]))


def missing_of(workload):
    """The programs that a workload needs and that are not installed."""
    path = os.environ["PATH"] + ":/usr/local/sbin:/usr/sbin:/sbin"
    return [t for t in workload.NEEDS.split()
            if not (os.path.exists(t) if "/" in t else shutil.which(t, path=path))]


def rounds_of(workload, place, options):
    """Run rounds until there is a verdict, or --most of them.  Returns a list of {side: sample}."""
    done = []
    one = samples.serve if hasattr(workload, "server") else samples.run
    prefixes = {"native": [], "fiberize": [f"{ROOT}/{options.build}/fiberize", *options.option]}
    if options.against:
        prefixes["against"] = [f"{options.against}/fiberize", *options.option]
    prefixes.update({side: [] for side in getattr(workload, "OPPONENTS", ())})
    sides = list(prefixes)
    while len(done) < options.most:
        turn = len(done) % len(sides)
        order = sides[turn:] + sides[:turn]
        got = {side: one(place, workload, prefixes[side], side) for side in order}
        done.append({side: got[side] for side in sides})
        if len(done) >= options.rounds:
            if time.monotonic() >= options.ends:
                break
            found = report.compare(done, "fiberize")
            if "undecided" not in (found["per_s"][5], found["cpu_us"][5]):
                break
    return done


def parse():
    """Parse the command line. Returns the parser and the options."""
    p = argparse.ArgumentParser(prog="run.py", description="Programs natively and under fiberize.")
    p.add_argument("--quick", action="store_true", help="a subset, within two minutes")
    p.add_argument("--seconds", type=float, help="of load in a round (3; quick: 1)")
    p.add_argument("--rounds", type=int, help="at least (5; quick: 3)")
    p.add_argument("--most", type=int, help="at most (11; quick: 3)")
    p.add_argument("--minutes", type=float, default=36,
                   help="after so many, no round more than --rounds (36)")
    p.add_argument("--against", help="build directory of another version, measured beside native and this build")
    p.add_argument("--build", default="build")
    p.add_argument("--json", help="write all samples there")
    p.add_argument("--chart", help="draw all ratios there, as SVG; needs gnuplot")
    p.add_argument("--option", action="append", default=[], help="of fiberize, a word")
    p.add_argument("--list", action="store_true")
    p.add_argument("workload", nargs="*")
    o = p.parse_args()
    if o.chart and not chart.available():
        p.error("--chart: gnuplot is not installed (Debian: apt-get install gnuplot-nox)")
    if o.minutes < 0:
        p.error(f"--minutes {o.minutes}: a number of minutes, 0 or more")
    o.ends = time.monotonic() + 60 * o.minutes
    o.seconds = o.seconds or (1 if o.quick else 3)
    o.rounds = o.rounds or (3 if o.quick else 5)
    o.most = max(o.rounds, o.most or (3 if o.quick else 11))
    return p, o


def main():
    """Run the workloads that the command line names, and report."""
    parser, options = parse()
    known = find()
    if options.list:
        print("\n".join(known))
        return 0
    for name in options.workload:
        if name not in known:
            parser.error(f"no workload {name}; there are {' '.join(known)}")
    modules = {n: load_workload(known[n]) for n in options.workload or known}
    if options.quick and not options.workload:
        modules = {n: m for n, m in modules.items() if getattr(m, "QUICK", False)}
    os.environ["LC_ALL"] = "C"
    os.environ["PATH"] += ":/usr/local/sbin:/usr/sbin:/sbin"
    os.environ.pop("LD_PRELOAD", None)
    samples.raise_descriptors()
    about = report.machine()
    print("\n".join(about))
    all_samples, missing, failed = {}, {}, {}
    for name, module in modules.items():
        missing[name] = missing_of(module)
        if missing[name]:
            print(f"\n{name}: {' '.join(missing[name])} not installed")
            continue
        del missing[name]
        place = Place(known[name], f"{ROOT}/{options.build}", options.seconds)
        try:
            if hasattr(module, "prepare"):
                module.prepare(place)
            all_samples[name] = rounds_of(module, place, options)
            report.show(name, all_samples[name])
        except Failed as why:
            failed[name] = str(why)
            print(f"\n{name}: {why}", flush=True)
        finally:
            place.close()
    report.summary(all_samples, missing, failed)
    # The samples first: gnuplot may fail.
    if options.json:
        report.save(options.json, all_samples, missing, failed, about)
    if options.chart and all_samples:
        chart.save(options.chart, all_samples)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
