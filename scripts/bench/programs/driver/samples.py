# SPDX-License-Identifier: MIT
"""driver/samples.py - one run of a workload on one side: a server under load, or a command."""
import os
import re
import resource
import socket
import subprocess
import time

from driver.place import ROOT, Failed

# Names of figures: in the output of measure and figures.awk, and in the report.
NAMES = {"latency_p50_us": "p50_us", "latency_p99_us": "p99_us", "latency_p999_us": "p999_us",
         "peak_kb": "peak_kb"}


def read_figures(text):
    """Read lines NAME VALUE. Values of one name are added up (several load programs), but not latencies."""
    found = {}
    for name, value in re.findall(r"^(\w+) ([0-9]+(?:\.[0-9]+)?)$", text, re.M):
        value = float(value)
        if not name.startswith("latency_"):
            value += found.get(name, 0)
        found[name] = value
    return found


def loaded(place, load):
    """The figures in the load's output."""
    with open(place.file("load.log"), encoding="utf-8", errors="replace") as f:
        text = f.read()
    if hasattr(load, "figures"):
        try:
            return load.figures(text)
        except (IndexError, KeyError, TypeError, ValueError) as error:
            raise Failed(f"no figures in what the load printed: {place.tail('load.log')}") from error
    done = subprocess.run(["awk", "-f", f"{ROOT}/scripts/bench/figures.awk"], input=text, text=True,
                          stdout=subprocess.PIPE, check=True)
    return read_figures(done.stdout)


def await_port(port):
    """Wait until the port is free: the kernel closes the sockets of an io_uring some time after the exit."""
    for _ in range(200):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return
            except OSError:
                time.sleep(0.01)


def serve(place, workload, prefix, side):
    """Start the server, load it, stop it.  Returns the sample, a dictionary."""
    for log in "server.log", "load.log":
        place.file(log, "")
    await_port(place.port)
    argv = [f"{place.build}/libexec/measure", "-n", side, "-p", str(place.port), "-w", "60",
            "-s", place.file("server.log"), "-l", place.file("load.log"),
            workload.load(place), "--", *prefix, *workload.server(place, side)]
    done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          cwd=place.work, stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Failed(f"{side}: {done.stderr.strip() or done.returncode}; "
                     f"server: {place.tail('server.log')}; load: {place.tail('load.log')}")
    got = read_figures(done.stdout)
    load = loaded(place, workload)
    requests = load.get("requests_total") or load.get("requests")
    if not requests:
        raise Failed(f"{side}: the load gave no figures: {place.tail('load.log')}")
    if load.get("errors", 0) > requests / 100:
        raise Failed(f"{side}: {load['errors']:.0f} errors of {requests:.0f} requests")
    sample = {name: v for key, name in NAMES.items() for v in [load.get(key, got.get(key))]
              if v is not None}
    sample["per_s"] = load.get("requests_per_second") or \
        load["requests"] / load.get("seconds", got["load_seconds"])
    sample["cpu_us"] = got["cpu_us"] / requests
    sample["switches"] = (got["switches_voluntary"] + got["switches_involuntary"]) / requests
    return sample


def run(place, workload, prefix, side):
    """Run a command to its end.  Returns the sample, a dictionary."""
    argv = [*prefix, *workload.command(place, side)]
    begun = time.monotonic()
    with open(place.file("load.log"), "w", encoding="utf-8") as log:
        p = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=place.work)
        _, status, usage = os.wait4(p.pid, 0)
        p.returncode = os.waitstatus_to_exitcode(status)
    elapsed = time.monotonic() - begun
    if p.returncode:
        raise Failed(f"{side}: exit status {p.returncode}: {place.tail('load.log')}")
    figures = loaded(place, workload)
    n = figures.get("operations", 1)
    sample = {name: v for key, name in NAMES.items() for v in [figures.get(key)] if v is not None}
    sample.update(per_s=n / figures.get("seconds", elapsed),
                  cpu_us=(usage.ru_utime + usage.ru_stime) * 1e6 / n,
                  switches=(usage.ru_nvcsw + usage.ru_nivcsw) / n, peak_kb=usage.ru_maxrss)
    return sample


def raise_descriptors():
    """Raise the limit on descriptors to the hard limit, for all sides."""
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
