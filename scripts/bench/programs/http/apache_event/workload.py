# SPDX-License-Identifier: MIT
"""Apache event: small pages."""
from driver import apache, loads

NEEDS = "apache2 wrk"


def prepare(place):
    apache.configure(place, "event")


def server(place, _side):
    return apache.command(place)


def load(place):
    return loads.wrk(place.port, 32, place.seconds)
