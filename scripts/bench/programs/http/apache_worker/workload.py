# SPDX-License-Identifier: MIT
"""Apache worker: small pages."""
from driver import apache, loads

NEEDS = "apache2 wrk"
QUICK = True


def prepare(place):
    apache.configure(place, "worker")


def server(place, _side):
    return apache.command(place)


def load(place):
    return loads.wrk(place.port, 32, place.seconds)
