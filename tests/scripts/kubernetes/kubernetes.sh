#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/kubernetes/kubernetes.sh - "fiberize kubernetes": what it prints is what kustomize makes of scripts/kubernetes
# with the same changes; what it refuses; what it makes of clusters, as a small API server answers for them; the
# program of the init container; the two patches by hand.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/by_hand.inc
. "$(dirname "$0")/../../lib/by_hand.inc"
# shellcheck source=tests/lib/cluster.inc
. "$(dirname "$0")/../../lib/cluster.inc"
need kubectl jq
room=$root/scripts/kubernetes

# ---- what it prints

version=$(sed -n 's/^VERSION := //p' "$root/Makefile")
cp -r "$room/base" "$work/base"
printed=$("$fiberize" kubernetes --image fiberize:0.1.0 --arch amd64 | json)
rendered=$(kubectl kustomize "$work/base" | json)
same 'rendered: four objects' 4 "$(wc -l <<<"$rendered")"
same 'printed as rendered' '' "$(diff <(jq . <<<"$rendered") <(jq . <<<"$printed"))"
same 'the base has the version' "'$version'" "$(jq -r '.spec.variables[]? | select(.name == "version").expression' \
	<<<"$printed")"
mkdir "$work/overlay"
cat >"$work/overlay/kustomization.yaml" <<'END'
bases: [../base]
patchesJson6902:
  - target: {group: admissionregistration.k8s.io, version: v1, kind: MutatingAdmissionPolicy, name: fiberize}
    path: image.yaml
END
cat >"$work/overlay/image.yaml" <<'END'
- {op: replace, path: /spec/variables/0/expression, value: "'registry.example/fiberize:1'"}
END
rendered=$(kubectl kustomize "$work/overlay" 2>/dev/null | json)
like 'an overlay: the image' '*registry.example/fiberize:1*' "$rendered"
same 'an overlay: printed as rendered' '' "$(diff <(jq . <<<"$rendered") \
	<("$fiberize" kubernetes --arch=amd64 --image=registry.example/fiberize:1 | json | jq .))"

printed=$("$fiberize" kubernetes --image i --arch arm64,amd64 --mixed --api v1beta1 \
	--namespace-selector example.org/team=a.b --profiles shop --profiles bank | json)
same 'the versions of the API' 'v1beta1 v1beta1 v1 v1' "$(jq -r 'select(.kind != "ConfigMap") |
	.apiVersion | sub(".*/"; "")' <<<"$printed" | xargs)"
same 'the namespaces' '{"example.org/team":"a.b"} {"example.org/team":"a.b"}' \
	"$(jq -c '.spec.matchResources.namespaceSelector.matchLabels // empty' <<<"$printed" | xargs -d '\n')"
same 'the profiles' 'bank/fiberize-profiles shop/fiberize-profiles' "$(jq -r 'select(.kind == "ConfigMap") |
	"\(.metadata.namespace)/\(.metadata.name)"' <<<"$printed" | sort | xargs)"
same 'no namespace, which delete would delete' '' "$(jq -r 'select(.kind == "Namespace").kind' <<<"$printed")"
conditions=$(jq -r '.spec.matchConditions[]?.expression' <<<"$printed")
same 'the architectures' "['arm64', 'amd64'] ['arm64', 'amd64'] ['arm64', 'amd64']" "$(grep -o "\['a[^]]*\]" <<<"$conditions" | xargs -d '\n')"
like 'mixed: only where named' '*: false*' "$conditions"

# ---- what it refuses

refused 'no image' 2 '*no image; --image IMAGE*' "$fiberize" kubernetes
refused 'no value' 2 '*--image needs a value*' "$fiberize" kubernetes --image
refused 'no such option' 2 '*--nonesuch: no such option*' "$fiberize" kubernetes --nonesuch
refused 'a bad image' 2 "*a'b: not the name of an image*" "$fiberize" kubernetes --image "a'b"
refused 'a bad image of two lines' 2 '*not the name of an image*' "$fiberize" kubernetes --image "a${newline}b"
for image in http://x/y:1 x: UPPER/x:1 x@sha256:1; do
	refused "no image: $image" 2 "*$image: not the name of an image*" "$fiberize" kubernetes --image "$image"
done
same 'a namespace of one name, once, as a string' '  namespace: "null"' \
	"$("$fiberize" kubernetes --image a --profiles null --profiles null | grep '^  namespace:')"
refused 'a name that is too long' 2 '*not the name of a namespace*' \
	"$fiberize" kubernetes --image a --profiles "$(printf 'a%.0s' {1..64})"
refused 'a bad architecture' 2 '*not a list of architectures*' "$fiberize" kubernetes --image a --arch 'x y'
refused 'a bad version' 2 '*v2: not v1 or v1beta1*' "$fiberize" kubernetes --image a --api v2
refused 'a bad label' 2 '*not a label*' "$fiberize" kubernetes --image a --namespace-selector a
refused 'a bad namespace' 2 '*not the name of a namespace*' "$fiberize" kubernetes --image a --profiles A/b
refused 'an option of the library' 2 '*--processors: cannot be used with kubernetes*' \
	"$fiberize" -p 2 kubernetes --image a
refused 'an option of two words' 2 '*--stack-size: cannot be used with kubernetes*' \
	"$fiberize" --stack-size 64K kubernetes --image a
refused 'dry-run' 2 '*--dry-run: cannot be used with kubernetes*' "$fiberize" --dry-run kubernetes --image a
run "$fiberize" kubernetes --help
like 'help' 'usage: fiberize kubernetes --image IMAGE *' "$out"
if [ -e /dev/full ]; then
	run sh -c '"$0" kubernetes --image a >/dev/full' "$fiberize"
	same 'a full disk' 1 "$code"
fi

must "$root/scripts/package/oci.sh" 1.2.3 "$build" "$work/layout"
own=$(jq -r '.manifests[0].platform.architecture' "$work/layout/index.json")
case $own in
amd64) other=arm64 ;;
*) other=amd64 ;;
esac
run "$fiberize" kubernetes --image a --layout "$work/layout"
like 'a layout: its architecture' "*\['$own'\]*" "$out"
refused 'an image of another architecture' 102 "*layout: an image for $own, not for $other;*" \
	"$fiberize" kubernetes --image a --layout "$work/layout" --arch $other
cp -r "$work/layout" "$work/damaged"
# layout NAME: refuses a layout that has no image of ours
layout()
{
	refused "$1" 102 '*damaged: not an OCI image layout that is for amd64 or arm64; make oci*' \
		timeout 30 "$fiberize" kubernetes --image a --layout "$work/damaged"
}
jq '.manifests[0].platform.architecture = "s390x"' "$work/layout/index.json" >"$work/damaged/index.json"
layout 'a layout of an architecture that fiberize is not for'
jq '.manifests[0].platform.architecture = "a\u0027] || true"' "$work/layout/index.json" >"$work/damaged/index.json"
layout 'a layout with something else for an architecture'
echo '{"manifests":[{"digest":"sha256:circle"}]}' >"$work/damaged/index.json"
cp "$work/damaged/index.json" "$work/damaged/blobs/sha256/circle"
layout 'a layout that leads in a circle'
# Each level would be looked at a thousand times as often as the one above it.
jq -n '{ manifests: [range(1000) | { digest: "sha256:circle" }] }' >"$work/damaged/index.json"
cp "$work/damaged/index.json" "$work/damaged/blobs/sha256/circle"
layout 'a layout that names itself a thousand times'
echo '{"manifests":[{"digest":"sha256:../../../layout/index.json"},{"digest":"../layout:index.json"}]}' \
	>"$work/damaged/index.json"
layout 'a layout whose digest is a path elsewhere'
mkfifo "$work/damaged/blobs/sha256/fifo"
echo '{"manifests":[{"digest":"sha256:fifo"}]}' >"$work/damaged/index.json"
layout 'a layout with a FIFO for an index'
echo '{"manifests":[{"digest":"sha256:nested"}]}' >"$work/damaged/index.json"
cp "$work/layout/index.json" "$work/damaged/blobs/sha256/nested"
run "$fiberize" kubernetes --image a --layout "$work/damaged"
like 'a layout with an index below the index' "*\['$own'\]*" "$out"
refused 'an architecture that fiberize is not for' 102 '*--arch s390x: fiberize is for amd64 and arm64 alone; *' \
	"$fiberize" kubernetes --image a --arch amd64,s390x
refused 'no layout' 102 '*not an OCI image layout*' "$fiberize" kubernetes --image a --layout "$work"

# ---- clusters

ask=("$fiberize" kubernetes --image a --arch amd64 --cluster)
cluster v1.36.1 v1 amd64 amd64
run "${ask[@]}"
like '1.36' '0:*/v1'"$newline"'kind: MutatingAdmissionPolicy'"$newline"'*' "$code:$out"
cluster v1.34.2 v1beta1 amd64
run "${ask[@]}"
like '1.34, where it is on: v1beta1' '0:*/v1beta1'"$newline"'kind: MutatingAdmissionPolicy'"$newline"'*' "$code:$out"
refused 'the other version of the API' 102 '*(v1.34.2) has no MutatingAdmissionPolicy of v1: *' "${ask[@]}" --api v1
cluster v1.31.0 none amd64
refused 'a cluster that is too old' 102 \
	"*the cluster (v1.31.0) has no MutatingAdmissionPolicy: *the two patches in $build/libexec/kubernetes/by-hand" \
	"${ask[@]}"
cluster v1.36.1 v1 arm64 arm64
refused 'nodes of another architecture' 102 '*the image is for amd64, and the nodes are arm64*' "${ask[@]}"
cluster v1.36.1 v1 arm64 amd64
refused 'some nodes of another architecture' 102 '*some nodes are arm64*--mixed' "${ask[@]}"
run "${ask[@]}" --mixed
like 'some nodes, --mixed' '0::*: false*' "$code:$err:$out"
cluster v1.36.1 v1
run "${ask[@]}"
like 'nodes that may not be listed: status, and a line' '0:*nodes are not known: *forbidden*' "$code:$err"
like 'nodes that may not be listed: printed' '*kind: MutatingAdmissionPolicy*' "$out"
end_cluster
refused 'no cluster' 102 '*the cluster does not answer: *' "${ask[@]}"
mkdir "$work/bin"
for tool in cat dirname grep sed sort tail tr uname; do
	ln -s "$(command -v $tool)" "$work/bin"
done
refused 'no kubectl' 1 '*--cluster needs kubectl' env PATH="$work/bin" /bin/sh "$build/libexec/kubernetes.sh" 1 --image a \
	--arch amd64 --cluster

# ---- the init container's program

install=$build/install
mkdir "$work/volume"
run "$install" "$work/volume" "$build"
same 'install' '0::' "$code:$out:$err"
same 'install: the same files' '' "$(cmp "$library" "$work/volume/libfiberize.so" 2>&1
	cmp "$build/libfiberize-preload.so" "$work/volume/libfiberize-preload.so" 2>&1)"
echo old >"$work/volume/.libfiberize.so.new"
run "$install" "$work/volume" "$build"
same 'install: again' '0:libfiberize-preload.so libfiberize.so' "$code:$(find "$work/volume" -type f -printf '%f\n' | sort | xargs)"
run "$install" "$work/none" "$build"
like 'install: no volume' '0:fiberize: */none/libfiberize.so: No such file*; the pod runs without fibers' "$code:$err"
mkdir "$work/small"
run "$install" "$work/small" "$work/none"
like 'install: no library' '0::fiberize: */none/libfiberize.so: No such file*' "$code:$(ls -A "$work/small"):$err"
# shellcheck disable=SC2016 # for the inner shell
run unshare --user --map-root-user --mount sh -c 'mount -t tmpfs -o size=64k small "$0" && "$1" "$0" "$2"; echo $?; ls -A "$0"' \
	"$work/small" "$install" "$build"
same 'install: a full volume: nothing half done' 0 "$out"
like 'install: a full volume: message' '*/small/libfiberize.so: No space left on device; the pod runs*' "$err"
run "$install"
same 'install: usage' 2 "$code"

# ---- the two patches by hand

by_hand '{name: beside, image: y}' | json >"$work/patched"
same 'by hand: rendered' '["env A LD_PRELOAD=/fiberize/libfiberize-preload.so","init fiberize /fiberize","label 0.1.0",'\
'"mounts /etc/fiberize /fiberize","beside it: {}","volumes fiberize fiberize-profiles"]' \
	"$(jq -c '.spec.template | .spec.containers[0] as $c | [
		"env " + ([$c.env[] | .name + if .name == "A" then "" else "=" + .value end] | sort | join(" ")),
		"init " + (.spec.initContainers[0] | "\(.name) \(.args[0])"), "label " + .metadata.labels["fiberize/version"],
		"mounts " + ([$c.volumeMounts[].mountPath] | sort | join(" ")),
		"beside it: " + (.spec.containers[1] | del(.name, .image) | tojson),
		"volumes " + ([.spec.volumes[].name] | sort | join(" "))]' "$work/patched")"
finish
