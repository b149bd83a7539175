# SPDX-License-Identifier: MIT
"""driver/compress.py - compresses a file, half of it random; an operation is a megabyte of the file."""
import os

MEGABYTES = 24


def prepare(place):
    with open(place.file("data"), "wb") as f:
        for _ in range(MEGABYTES):
            half = os.urandom(1 << 19)
            f.write(half + bytes(b & 15 for b in half))


def figures(_text):
    return {"operations": MEGABYTES}
