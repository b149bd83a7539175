# SPDX-License-Identifier: MIT
"""driver/loads.py - load programs: functions make their command lines, and *_figures() read their output.

The output of a program that has no *_figures() here is read by scripts/bench/figures.awk.
"""
import json
import re

from driver.place import ROOT


def wrk(port, connections, seconds, path="/", more=""):
    """HTTP on connections that are used again for each request."""
    return (f"wrk --latency -t1 -c{connections} -d{max(1, round(seconds))}s "
            f"-s {ROOT}/scripts/bench/wrk.lua {more} http://127.0.0.1:{port}{path}")


def ab(port, connections, requests, path="/", more=""):
    """HTTP on a new connection for each request."""
    return f"ab -q {more} -c {connections} -n {requests} http://127.0.0.1:{port}{path}"


def echo(place, port, connections, size, more=""):
    """Messages of size bytes that the server sends back."""
    return (f"{place.build}/libexec/echo_client -c {connections} -d {place.seconds} -s {size} "
            f"{more} {port}")


def paced(place, port, connections, rate, path="/"):
    """HTTP, rate requests per second, on connections that are used again (echo_client -r)."""
    return (f"{place.build}/libexec/echo_client -c {connections} -d {place.seconds} -r {rate} "
            f"--get {path} {port}")


def redis(port, connections, requests, test, more=""):
    """Commands of redis; each connection waits for the answer before it sends the next command."""
    return (f"echo requests {requests}; redis-benchmark -p {port} --csv -c {connections} "
            f"-n {requests} -t {test} {more}")


def redis_figures(text):
    """redis-benchmark --csv: test, rps, avg, min, p50, p95, p99 and max, latencies in milliseconds."""
    row = text.strip().splitlines()[-1].replace('"', "").split(",")
    return {"requests": float(re.findall(r"^requests (\d+)$", text, re.M)[-1]),
            "requests_per_second": float(row[1]), "latency_p50_us": float(row[4]) * 1000,
            "latency_p99_us": float(row[6]) * 1000}


def sysbench_figures(text):
    """sysbench: an operation is a transaction of a database, or an operation on a file."""
    events = float(re.search(r"total number of events: +(\d+)", text)[1])
    seconds = float(re.search(r"total time: +([\d.]+)s", text)[1])
    got = {"requests": events, "operations": events, "seconds": seconds,
           "requests_per_second": events / seconds}
    p99 = re.search(r"99th percentile: +([\d.]+)", text)
    if p99:
        got["latency_p99_us"] = float(p99[1]) * 1000
    return got


def fio_figures(text):
    """fio --output-format=json: reads and writes of all jobs are added up; the largest percentiles count."""
    done, seconds, p50, p99, p999 = 0, 0, [], [], []
    for job in json.JSONDecoder().raw_decode(text[text.index("{"):])[0]["jobs"]:
        for way in "read", "write":
            if not job[way]["total_ios"]:
                continue
            done += job[way]["total_ios"]
            seconds = max(seconds, job[way]["runtime"] / 1000)
            at = job[way]["clat_ns"].get("percentile", {})
            for into, key in (p50, "50.000000"), (p99, "99.000000"), (p999, "99.900000"):
                into += [at[key] / 1000] if key in at else []
    got = {"operations": done, "requests": done, "seconds": seconds}
    for name, values in ("p50", p50), ("p99", p99), ("p999", p999):
        if values:
            got[f"latency_{name}_us"] = max(values)
    return got


def iperf_figures(text):
    """iperf3 --json: an operation is a megabyte (10^6 bytes) received."""
    end = json.JSONDecoder().raw_decode(text[text.index("{"):])[0]["end"]
    return {"requests": end["sum_received"]["bytes"] / 1e6,
            "requests_per_second": end["sum_received"]["bits_per_second"] / 8e6}
