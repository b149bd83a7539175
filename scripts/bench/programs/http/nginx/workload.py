# SPDX-License-Identifier: MIT
"""nginx: an event loop in a process without threads."""
from driver import loads

NEEDS = "nginx wrk"


def prepare(place):
    place.pages_configuration(place.port)


def server(place, _side):
    return ["nginx", "-c", place.file("pages.conf")]


def load(place):
    return loads.wrk(place.port, 32, place.seconds)
