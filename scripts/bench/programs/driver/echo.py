# SPDX-License-Identifier: MIT
"""Messages that come back, a thread for each connection; beside io_uring written by hand."""
OPPONENTS = ["oneshot", "multishot"]


def server(place, side):
    if side in OPPONENTS:
        return [f"{place.build}/bench/uring_server", *["-m"][:side == "multishot"], "-p", str(place.port)]
    return [f"{place.build}/tests/programs/legacy_server", "-e", "-p", str(place.port)]
