# SPDX-License-Identifier: MIT
"""Messages of 64 bytes on 128 connections, a thread for each; compared with uring_server.c."""
from driver import echo, loads

NEEDS = ""
OPPONENTS = echo.OPPONENTS
server = echo.server


def load(place):
    return loads.echo(place, place.port, 128, 64)
