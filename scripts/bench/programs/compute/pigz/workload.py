# SPDX-License-Identifier: MIT
"""pigz: threads that compute."""
from driver import compress

NEEDS = "pigz"
prepare, figures = compress.prepare, compress.figures


def command(_place, _side):
    return ["sh", "-c", "exec pigz -k -f -c data >/dev/null"]
