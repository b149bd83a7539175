# SPDX-License-Identifier: MIT
"""driver/microsocks.py - microsocks as a proxy between clients and an echo server."""
from driver import loads


def prepare(place):
    place.behind = place.echo_server()
    place.file("proxychains.conf", f"""strict_chain
quiet_mode
[ProxyList]
socks5 127.0.0.1 {place.port}
""")


def server(place, _side):
    return ["microsocks", "-i", "127.0.0.1", "-p", str(place.port)]


def echo(place, connections, size):
    return f"proxychains4 -f {place.file('proxychains.conf')} " + \
        loads.echo(place, place.behind, connections, size)
