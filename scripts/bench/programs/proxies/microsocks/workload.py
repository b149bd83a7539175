# SPDX-License-Identifier: MIT
"""Messages of 64 bytes on 32 connections through microsocks, a thread for each."""
from driver import microsocks

NEEDS = "microsocks proxychains4"
QUICK = True
server, prepare = microsocks.server, microsocks.prepare


def load(place):
    return microsocks.echo(place, 32, 64)
