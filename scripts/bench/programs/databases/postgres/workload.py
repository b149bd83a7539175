# SPDX-License-Identifier: MIT
"""PostgreSQL, a process for each of 32 connections: select by primary key."""
import glob
import os
import re

# Debian installs each version in a directory of its own; the server is not in PATH.
BIN = (sorted(glob.glob("/usr/lib/postgresql/*/bin")) or ["/usr/lib/postgresql"])[-1]
NEEDS = f"{BIN}/postgres {BIN}/pgbench setpriv"
QUICK = True


def as_user():
    """The words that start a command as another user: PostgreSQL refuses to run as root."""
    return [] if os.getuid() else ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"]


def pgbench(place, options):
    """A shell command for pgbench. It first waits: the server listens before it accepts clients."""
    env = f"export PGHOST=127.0.0.1 PGPORT={place.port} PGUSER=bench PGDATABASE=postgres"
    return f"{env}; until {BIN}/pg_isready -q; do sleep 0.05; done; exec {BIN}/pgbench {options}"


def server(place, _side):
    return [*as_user(), f"{BIN}/postgres", "-D", place.file("data/db"), "-p", str(place.port),
            "-k", place.work, "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]


def prepare(place):
    os.makedirs(place.file("data"), exist_ok=True)
    if not os.getuid():
        place.run("chown", "nobody", place.work, place.file("data"))
    place.run(*as_user(), f"{BIN}/initdb", "-D", place.file("data/db"), "-U", "bench", "-A", "trust", "-N")
    place.helper(*server(place, "native"), port=place.port)
    place.run("sh", "-c", pgbench(place, "-i -s 5 -q"))
    place.stop_helpers()


def load(place):
    return pgbench(place, f"-S -M prepared -n -c 32 -t {int(250 * place.seconds)}")


def figures(text):
    """The figures in pgbench's output; its tps leaves out the time to connect."""
    return {"requests": float(re.search(r"transactions actually processed: (\d+)", text)[1]),
            "requests_per_second": float(re.search(r"^tps = ([\d.]+)", text, re.M)[1])}
