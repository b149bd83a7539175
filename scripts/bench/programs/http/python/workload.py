# SPDX-License-Identifier: MIT
"""Python's ThreadingHTTPServer, 64 connections."""
from driver import loads

NEEDS = "/usr/bin/python3 wrk"
QUICK = True


def server(place, _side):
    return ["/usr/bin/python3", "-u", place.own("server.py"), str(place.port)]


def load(place):
    return loads.wrk(place.port, 64, place.seconds)
