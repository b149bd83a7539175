# SPDX-License-Identifier: MIT
"""Eight streams at full speed, from the threads of one program to those of another."""
from driver import loads

NEEDS = "fio"
figures = loads.fio_figures
STREAMS = 8


def command(place, _side):
    common = (f"fio --thread --name=x --ioengine=net --protocol=tcp --port={place.port} --bs=64k "
              f"--size=1t --numjobs={STREAMS} --time_based --runtime={max(1, round(place.seconds))} "
              "--group_reporting --output-format=json")
    return ["sh", "-c", f"{common} --rw=read --listen >/dev/null & receiver=$!; sleep 0.5; "
                        f"{common} --rw=write --hostname=127.0.0.1; kill -9 $receiver || true"]
