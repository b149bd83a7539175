# SPDX-License-Identifier: MIT
"""Ruby, messages of 64 bytes on 32 connections, a thread for each; Ruby runs one thread at a time."""
from driver import loads

NEEDS = "ruby"
QUICK = True


def server(place, _side):
    return ["ruby", place.own("echo.rb"), str(place.port)]


def load(place):
    return loads.echo(place, place.port, 32, 64)
