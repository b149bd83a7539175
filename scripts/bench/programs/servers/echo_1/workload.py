# SPDX-License-Identifier: MIT
"""Messages of 64 bytes on one connection, so only latency counts; a thread for each connection."""
from driver import loads

NEEDS = ""
QUICK = True


def server(place, _side):
    return [f"{place.build}/tests/programs/legacy_server", "-e", "-p", str(place.port)]


def load(place):
    return loads.echo(place, place.port, 1, 64)
