# SPDX-License-Identifier: MIT
"""Apache worker: small pages."""
from driver import apache

NEEDS = "apache2 wrk"
QUICK = True
prepare, server, load = apache.pages("worker")
