# SPDX-License-Identifier: MIT
"""redis: one event loop."""
from driver import loads

NEEDS = "redis-server redis-benchmark"
QUICK = True
figures = loads.redis_figures


def server(place, _side):
    return ["redis-server", "--port", str(place.port), "--bind", "127.0.0.1", "--save", "",
            "--dir", place.work]


def load(place):
    return loads.redis(place.port, 50, int(40000 * place.seconds), "get")
