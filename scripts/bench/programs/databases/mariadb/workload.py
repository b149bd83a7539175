# SPDX-License-Identifier: MIT
"""MariaDB, a thread for each of 64 connections: select by primary key."""
from driver import loads, mariadb

NEEDS = "mariadbd mysql_install_db sysbench"
figures = loads.sysbench_figures
server, prepare = mariadb.server, mariadb.prepare


def load(place):
    return mariadb.load(place, 64)
