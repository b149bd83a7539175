# SPDX-License-Identifier: MIT
"""Eight streams at full speed, from the threads of one program to those of another."""
from driver import loads

NEEDS = "fio"
QUICK = True
figures = loads.fio_figures
STREAMS = 8


def command(place, _side):
    common = (f"fio --thread --name=x --ioengine=net --protocol=tcp --port={place.port} --bs=64k "
              f"--size=1t --numjobs={STREAMS} --time_based --runtime={max(1, round(place.seconds))} "
              "--group_reporting --output-format=json")
    return ["sh", "-c", f"{common} --rw=read --listen >/dev/null & "
                        f"sleep 0.5; {common} --rw=write --hostname=127.0.0.1; kill $!; wait; true"]
