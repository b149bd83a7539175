# SPDX-License-Identifier: MIT
"""driver/apache.py - configures Apache, for one of its three process models (event, worker, prefork)."""
import os

from driver import loads

MODULES = "/usr/lib/apache2/modules"


def configure(place, mpm):
    os.makedirs(place.file("pages"), exist_ok=True)
    place.file("pages/index.html", "hello\n" * 20)
    user = "User nobody\nGroup nogroup" if os.getuid() == 0 else ""
    threads = "" if mpm == "prefork" else "ThreadsPerChild 32\nServerLimit 4"
    place.file("apache.conf", f"""ServerRoot {place.work}
ServerName localhost
Listen 127.0.0.1:{place.port}
PidFile {place.work}/pid
DefaultRuntimeDir {place.work}
ErrorLog {place.work}/error.log
LoadModule mpm_{mpm}_module {MODULES}/mod_mpm_{mpm}.so
LoadModule authz_core_module {MODULES}/mod_authz_core.so
LoadModule dir_module {MODULES}/mod_dir.so
DocumentRoot {place.work}/pages
MaxKeepAliveRequests 0
StartServers 2
{threads}
MaxRequestWorkers 64
{user}
""")


def pages(mpm):
    """Returns the functions prepare(), server() and load() of a workload: Apache with small pages."""
    def load(place):
        if mpm == "prefork":
            return loads.ab(place.port, 16, int(3000 * place.seconds))
        return loads.wrk(place.port, 32, place.seconds)

    def server(place, _side):
        return ["apache2", "-DFOREGROUND", "-f", place.file("apache.conf")]

    return lambda place: configure(place, mpm), server, load
