# SPDX-License-Identifier: MIT
"""Python's ThreadingHTTPServer, 64 connections, 1,000 requests a second (echo_client -r)."""
from driver import loads
from driver.place import load_workload

closed = load_workload(__file__, "../python")
NEEDS = closed.NEEDS


def server(place, _side):
    return ["/usr/bin/python3", "-u", closed.__file__.replace("workload.py", "server.py"), str(place.port)]


def load(place):
    return loads.paced(place, place.port, 64, 1000)
