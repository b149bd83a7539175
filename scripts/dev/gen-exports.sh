#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/gen-exports.sh SYMBOLS.DEF - the version script of libfiberize.so.
# Anonymous: a named version node silently disables interposition.
set -eu

echo '{'
echo 'global:'
sed -n 's/^FZ_\(SYMBOL\|ALIAS\)(\([A-Za-z0-9_]*\),.*/	\2;/p' "$1"
echo 'local: *;'
echo '};'
