# SPDX-License-Identifier: MIT
"""Apache prefork: small pages."""
from driver import apache

NEEDS = "apache2 ab"
QUICK = True
prepare, server, load = apache.pages("prefork")
