# SPDX-License-Identifier: MIT
"""driver/echo.py - an echo server with a thread for each connection, beside uring_server.c."""
OPPONENTS = ["oneshot", "multishot"]


def server(place, side):
    if side in OPPONENTS:
        return [f"{place.build}/bench/uring_server", *["-m"][:side == "multishot"], "-p", str(place.port)]
    return [f"{place.build}/tests/programs/legacy_server", "-e", "-p", str(place.port)]
