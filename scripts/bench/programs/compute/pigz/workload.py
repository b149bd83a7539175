# SPDX-License-Identifier: MIT
"""pigz: threads that compute."""
import os

NEEDS = "pigz"
MEGABYTES = 24


def prepare(place):
    with open(place.file("data"), "wb") as f:
        for _ in range(MEGABYTES):
            half = os.urandom(1 << 19)
            f.write(half + bytes(b & 15 for b in half))


def command(_place, _side):
    return ["sh", "-c", "exec pigz -k -f -c data >/dev/null"]


def figures(_text):
    return {"operations": MEGABYTES}
