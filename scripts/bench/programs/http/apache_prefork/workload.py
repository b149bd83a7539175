# SPDX-License-Identifier: MIT
"""Apache prefork: small pages."""
from driver import apache, loads

NEEDS = "apache2 ab"
QUICK = True


def prepare(place):
    apache.configure(place, "prefork")


def server(place, _side):
    return apache.command(place)


def load(place):
    return loads.ab(place.port, 16, int(3000 * place.seconds))
