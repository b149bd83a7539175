# SPDX-License-Identifier: MIT
"""Python's ThreadingHTTPServer, 64 connections by the clock, 1000 requests a second."""
from driver import loads
from driver.place import load_workload

closed = load_workload(__file__, "../python")
NEEDS = closed.NEEDS


def server(place, _side):
    return ["/usr/bin/python3", "-u", closed.__file__.replace("workload.py", "server.py"), str(place.port)]


def load(place):
    return loads.paced(place, place.port, 64, 1000)
