# SPDX-License-Identifier: MIT
"""driver/mariadb.py - MariaDB with a table for sysbench; a thread for each connection, or a thread pool."""
from driver import loads

NEEDS = "mariadbd mysql_install_db sysbench"
OPPONENTS = ["pool"]
figures = loads.sysbench_figures


def sysbench(place, threads, seconds, what, script="oltp_point_select"):
    return (f"sysbench {script} --db-driver=mysql --mysql-socket={place.file('socket')} "
            f"--mysql-user=root --tables=1 --table-size=10000 --threads={threads} "
            f"--time={max(1, round(seconds))} --percentile=99 {what}")


def server(place, side):
    pool = ["--thread-handling=pool-of-threads"] if side == "pool" else []
    return ["mariadbd", "--no-defaults", "--user=root", f"--datadir={place.file('data')}",
            f"--socket={place.file('socket')}", f"--port={place.port}", "--bind-address=127.0.0.1",
            "--max-connections=6000", "--back-log=6000", "--innodb-flush-log-at-trx-commit=2",
            f"--pid-file={place.file('pid')}", *pool]


def prepare(place):
    place.run("mysql_install_db", "--no-defaults", "--user=root", f"--datadir={place.file('data')}",
              "--auth-root-authentication-method=normal", "--skip-test-db")
    place.helper(*server(place, "native"), port=place.port)
    place.run("mysql", "--no-defaults", f"--socket={place.file('socket')}", "-uroot", "-e",
              "create database sbtest")
    place.run("sh", "-c", sysbench(place, 1, 1, "prepare"))
    place.stop_helpers()


def load(place, connections, script="oltp_point_select"):
    return sysbench(place, connections, place.seconds, "run", script)
