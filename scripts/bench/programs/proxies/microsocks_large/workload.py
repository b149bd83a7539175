# SPDX-License-Identifier: MIT
"""Messages of 200 KB on 4 connections through microsocks, a thread for each."""
from driver import microsocks

NEEDS = "microsocks proxychains4"
QUICK = True
server, prepare = microsocks.server, microsocks.prepare


def load(place):
    return microsocks.echo(place, 4, 200000)
