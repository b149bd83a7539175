#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/kubernetes/kubernetes_policy.sh - what the policies of scripts/kubernetes make of pods: their expressions are
# evaluated by an evaluator of CEL, the patches are applied, and the objects are checked against the types of the
# Kubernetes API.  There is no API server here: tests/kubernetes/admission.mjs stands for it.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/by_hand.inc
. "$(dirname "$0")/../../lib/by_hand.inc"
need node npm kubectl openssl
tests=$root/tests/kubernetes
python=/usr/bin/python3

"$tests/modules.sh" "$build/npm" 2>"$work/complaints" || {
	# Nothing of the registry here is a privilege that is missing, anything else a fault.
	grep -Eq 'ENOTFOUND|EAI_AGAIN|ECONNREFUSED|ETIMEDOUT|ENETUNREACH|E404|E403' "$work/complaints" ||
		die "modules.sh: $(cat "$work/complaints")"
	skip 'the policies' "npm reaches no registry here: $(grep -m 1 -E 'code E|^E' "$work/complaints")"
	finish
}

# one NAME: the YAML documents on standard input as the list NAME; a single one by itself
one()
{
	"$python" -c 'import json, sys, yaml
all = [o for o in yaml.safe_load_all(sys.stdin) if o]
print(json.dumps(all[0] if sys.argv[1] else all))' "${2-}" >"$work/$1.json"
}

"$fiberize" kubernetes --image fiberize:0.1.0 --arch amd64 | one default
"$fiberize" kubernetes --image fiberize:0.1.0 --arch amd64,arm64 --mixed --api v1beta1 --profiles shop | one mixed
one cases single <"$tests/cases.yaml"
jq -s . "$work/default.json" "$work/mixed.json" >"$work/manifests.json"

by_hand '{name: beside, image: y, env: [{name: LD_PRELOAD, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]}' | one hand single

# node looks for modules beside the script that imports them.
mkdir "$work/run"
cp "$tests"/*.mjs "$work/run"
ln -s "$build/npm/node_modules" "$build/npm/api" "$build/npm/package.json" "$work/run"
lines node --preserve-symlinks --preserve-symlinks-main "$work/run/policy.mjs" \
	"$work/manifests.json" "$work/cases.json" "$work/hand.json"
finish
