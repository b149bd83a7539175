# SPDX-License-Identifier: MIT
"""Eight streams at full speed, from the threads of one program to those of another."""
from driver import loads
from driver.place import free_port

NEEDS = "fio ss"
figures = loads.fio_figures
STREAMS = 8


def command(place, _side):
    # Use another port each time, because the last receiver may still be there.
    port = free_port()
    common = (f"fio --thread --name=x --ioengine=net --protocol=tcp --port={port} --bs=64k "
              f"--size=1t --numjobs={STREAMS} --time_based --runtime={max(1, round(place.seconds))} "
              "--group_reporting --output-format=json")
    listens = f"[ $(ss -Hltn 'sport >= :{port} and sport < :{port + STREAMS}' | wc -l) = {STREAMS} ]"
    return ["sh", "-c", f"{common} --rw=read --listen >/dev/null & receiver=$!; "
                        f"while kill -0 $receiver && ! {listens}; do sleep 0.05; done; "
                        f"{common} --rw=write --hostname=127.0.0.1; kill -9 $receiver || true"]
