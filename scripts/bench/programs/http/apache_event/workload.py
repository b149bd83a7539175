# SPDX-License-Identifier: MIT
"""Apache event: small pages."""
from driver import apache

NEEDS = "apache2 wrk"
prepare, server, load = apache.pages("event")
