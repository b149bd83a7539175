# SPDX-License-Identifier: MIT
"""TLS handshakes: a new connection for each message, 16 connections at once."""
from driver import loads
from driver.place import load_workload

stunnel = load_workload(__file__, "../stunnel")
NEEDS = stunnel.NEEDS
figures = loads.redis_figures
prepare = stunnel.prepare
server = stunnel.server


def load(place):
    return loads.redis(place.port, 16, int(400 * place.seconds), "ping_mbulk",
                       "--tls --insecure -k 0")
