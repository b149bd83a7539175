# SPDX-License-Identifier: MIT
"""MariaDB, 64 connections: select by primary key."""
from driver import mariadb

NEEDS = mariadb.NEEDS
OPPONENTS = mariadb.OPPONENTS
figures, prepare, server = mariadb.figures, mariadb.prepare, mariadb.server


def load(place):
    return mariadb.load(place, 64)
