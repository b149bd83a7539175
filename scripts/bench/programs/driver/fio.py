# SPDX-License-Identifier: MIT
"""driver/fio.py - fio on a file, which is made once and then read or written for some seconds."""

SIZE = "256m"


def prepare(place):
    place.run("fio", "--name=x", "--filename=" + place.file("data"), f"--size={SIZE}",
              "--rw=write", "--bs=1m", "--end_fsync=1")


def command(place, *more):
    return ["fio", "--name=x", "--filename=" + place.file("data"), f"--size={SIZE}", "--bs=4k",
            "--invalidate=0", "--time_based", f"--runtime={max(1, round(place.seconds))}",
            "--group_reporting", "--output-format=json", *more]
