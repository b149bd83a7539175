# SPDX-License-Identifier: MIT
"""Java, messages of 64 bytes on 32 connections, a thread for each."""
import os

from driver import loads

NEEDS = "java javac"
QUICK = True
CONNECTIONS, SIZE = 32, 64


def prepare(place):
    place.run("javac", "-d", place.work, os.path.join(os.path.dirname(__file__), "Echo.java"))


def server(place, _side):
    return ["java", "-Xmx128m", "-cp", place.work, "Echo", str(place.port)]


def load(place):
    return loads.echo(place, place.port, CONNECTIONS, SIZE)
