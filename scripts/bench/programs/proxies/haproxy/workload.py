# SPDX-License-Identifier: MIT
"""Messages of 64 bytes on 32 connections through haproxy: event loops in threads."""
from driver import loads

NEEDS = "haproxy"
QUICK = True


def prepare(place):
    place.file("haproxy.conf", f"""global
    maxconn 4096
    nbthread 2
defaults
    mode tcp
    timeout connect 60s
    timeout client 60s
    timeout server 60s
listen echo
    bind 127.0.0.1:{place.port}
    server behind 127.0.0.1:{place.echo_server()}
""")


def server(place, _side):
    return ["haproxy", "-db", "-f", place.file("haproxy.conf")]


def load(place):
    return loads.echo(place, place.port, 32, 64)
