# SPDX-License-Identifier: MIT
"""memcached: four event loops, 64 connections."""
NEEDS = "memcached memcslap"
QUICK = True


def server(place, _side):
    return ["memcached", "-u", "nobody", "-U", "0", "-l", "127.0.0.1", "-p", str(place.port),
            "-t", "4"]


def load(place):
    n = int(300 * place.seconds)
    return (f"memcslap --servers=127.0.0.1:{place.port} --concurrency=64 --execute-number={n} "
            f"--test=get; echo requests {64 * n}")
