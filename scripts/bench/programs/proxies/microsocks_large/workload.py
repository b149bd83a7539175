# SPDX-License-Identifier: MIT
"""Messages of 200 KB on 4 connections through microsocks, a thread for each."""
from driver import loads

NEEDS = "microsocks proxychains4"
QUICK = True


def prepare(place):
    place.behind = place.echo_server()
    place.file("proxychains.conf", f"""strict_chain
quiet_mode
[ProxyList]
socks5 127.0.0.1 {place.port}
""")


def server(place, _side):
    return ["microsocks", "-i", "127.0.0.1", "-p", str(place.port)]


def load(place):
    return f"proxychains4 -f {place.file('proxychains.conf')} " + \
        loads.echo(place, place.behind, 4, 200000)
