# SPDX-License-Identifier: MIT
"""TLS messages on 32 connections through stunnel, after 100 other connections were opened and closed."""
from driver import loads
from driver.place import free_port

NEEDS = "stunnel4 openssl redis-benchmark redis-server"
QUICK = True
figures = loads.redis_figures


def prepare(place):
    place.run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
              "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem")
    place.run("sh", "-c", "cat key.pem cert.pem >both.pem")
    behind = free_port()
    place.helper("redis-server", "--port", str(behind), "--save", "", "--bind", "127.0.0.1",
                 port=behind)
    place.file("stunnel.conf", f"""foreground = yes
pid =
syslog = no
debug = 3
cert = {place.file("both.pem")}
[redis]
accept = 127.0.0.1:{place.port}
connect = 127.0.0.1:{behind}
""")


def server(place, _side):
    return ["stunnel4", place.file("stunnel.conf")]


def load(place):
    tls = "--tls --insecure"
    return loads.redis(place.port, 100, 100, "ping_mbulk", f"{tls} -k 0") + " >/dev/null && " + \
        loads.redis(place.port, 32, int(15000 * place.seconds), "ping_mbulk", tls)
