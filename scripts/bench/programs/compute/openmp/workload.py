# SPDX-License-Identifier: MIT
"""OpenMP: short parallel loops, as many threads as there are CPUs."""
from driver import samples

NEEDS = "gcc"
QUICK = True
figures = samples.read_figures


def prepare(place):
    place.run("gcc", "-O2", "-fopenmp", place.own("loops.c"), "-o", place.file("loops"))


def command(place, _side):
    return [place.file("loops")]
