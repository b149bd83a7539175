# SPDX-License-Identifier: MIT
"""Messages of 64 bytes on 128 connections, 5,000 a second (echo_client -r): CPU time and latency count."""
from driver import loads
from driver.place import load_workload

closed = load_workload(__file__, "../echo_128")
NEEDS = closed.NEEDS
QUICK = True
server = closed.server


def load(place):
    return loads.echo(place, place.port, 128, 64, more="-r 5000")
