# SPDX-License-Identifier: MIT
"""A block device on one connection, 16 requests in flight, a pool of 16 threads."""
from driver import loads

NEEDS = "nbdkit fio"
QUICK = True
figures = loads.fio_figures


def server(place, _side):
    return ["nbdkit", "-f", "-i", "127.0.0.1", "-p", str(place.port), "--threads=16", "memory",
            "256M"]


def load(place):
    return (f"fio --name=x --ioengine=nbd --uri=nbd://127.0.0.1:{place.port}/ --rw=randrw --bs=4k "
            f"--iodepth=16 --size=256m --time_based --runtime={max(1, round(place.seconds))} "
            "--output-format=json")
