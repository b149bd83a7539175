# SPDX-License-Identifier: MIT
"""HTTP through tinyproxy, nginx behind it: a thread and a connection for each request."""
from driver import loads

NEEDS = "tinyproxy ab nginx"
QUICK = True


def prepare(place):
    place.behind = place.pages()
    place.file("tinyproxy.conf", f"""Port {place.port}
Listen 127.0.0.1
Timeout 60
MaxClients 400
LogLevel Error
LogFile "{place.file("tinyproxy.log")}"
""")


def server(place, _side):
    return ["tinyproxy", "-d", "-c", place.file("tinyproxy.conf")]


def load(place):
    return loads.ab(place.behind, 16, int(2500 * place.seconds),
                    more=f"-X 127.0.0.1:{place.port}")
