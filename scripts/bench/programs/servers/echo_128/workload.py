# SPDX-License-Identifier: MIT
"""Messages of 64 bytes on 128 connections, a thread for each."""
from driver import loads

NEEDS = ""


def server(place, _side):
    return [f"{place.build}/tests/programs/legacy_server", "-e", "-p", str(place.port)]


def load(place):
    return loads.echo(place, place.port, 128, 64)
