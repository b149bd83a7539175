# SPDX-License-Identifier: MIT
"""varnish: small pages from its cache, a pool of threads; nginx behind it."""
from driver import loads

NEEDS = "varnishd wrk nginx gcc"
QUICK = True


def prepare(place):
    place.file("pages.vcl", f"""vcl 4.1;
backend pages {{ .host = "127.0.0.1"; .port = "{place.pages()}"; }}
sub vcl_backend_response {{ set beresp.ttl = 1h; }}
""")


def server(place, _side):
    return ["varnishd", "-F", "-j", "none", "-n", place.file("varnish"), "-s", "malloc,64m",
            "-a", f"127.0.0.1:{place.port}", "-f", place.file("pages.vcl"), "-T", "none"]


def load(place):
    return loads.wrk(place.port, 32, place.seconds)
