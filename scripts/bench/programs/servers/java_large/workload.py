# SPDX-License-Identifier: MIT
"""Java, messages of 200 KB on 4 connections, a thread for each."""
from driver import loads
from driver.place import load_workload

java = load_workload(__file__, "../java")
NEEDS = java.NEEDS
QUICK = True
prepare, server = java.prepare, java.server


def load(place):
    return loads.echo(place, place.port, 4, 200000)
