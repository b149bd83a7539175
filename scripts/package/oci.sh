#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/package/oci.sh VERSION LIBRARY DIR - makes DIR, an OCI image layout with an image VERSION that holds
# nothing but the library, /usr/lib/fiberize/libfiberize.so, and its licence: for an image volume, or to copy
# from.  Needs jq and binutils.
#
# The same library and SOURCE_DATE_EPOCH (default: the time of the last commit, or 0) make the same bytes.
set -eu
umask 022
export LC_ALL=C TZ=UTC
version=$1 library=$2 dir=$3
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
epoch=${SOURCE_DATE_EPOCH-$(git -C "$root" log -1 --format=%ct 2>/dev/null)} || epoch=
epoch=${epoch:-0}

die()
{
	echo "oci.sh: $*" >&2
	exit 1
}

# The architecture is the library's, not this machine's.
case $(readelf -h "$library" | sed -n 's/^ *Machine: *//p') in
*X86-64) arch=amd64 ;;
AArch64) arch=arm64 ;;
*) die "$library: for a machine that has no name here" ;;
esac

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tree=$stage/tree
new=$stage/layout
mkdir -p "$tree/usr/lib/fiberize" "$tree/usr/share/doc/fiberize" "$new/blobs/sha256"
# As in the Debian package; debuggers find the symbols by the build id.
"${OBJCOPY:-objcopy}" --strip-unneeded --remove-section=.comment --remove-section=.note "$library" \
	"$tree/usr/lib/fiberize/libfiberize.so"
cp "$root/LICENSE" "$tree/usr/share/doc/fiberize/copyright"
chmod -R u=rwX,go=rX "$tree"

# Not compressed: what a compressor makes depends on its version.
(cd "$tree" && tar --create --format=ustar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
	--file="$stage/layer" usr)

# blob FILE: puts it among the blobs; prints its digest
blob()
{
	sum=$(sha256sum <"$1")
	sum=${sum%% *}
	cp "$1" "$new/blobs/sha256/$sum"
	echo "sha256:$sum"
}

# descriptor TYPE FILE [FILTER]
descriptor()
{
	jq -cnS --arg type "$1" --arg digest "$(blob "$2")" --argjson size "$(stat -c %s "$2")" \
		"{mediaType: \$type, digest: \$digest, size: \$size}${3-}"
}

created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
kind=application/vnd.oci.image
layer=$(descriptor $kind.layer.v1.tar "$stage/layer")
jq -cnS --arg created "$created" --arg arch "$arch" --arg version "$version" --argjson layer "$layer" '
	{created: $created, architecture: $arch, os: "linux",
	 config: {Labels: {"org.opencontainers.image.title": "fiberize",
			   "org.opencontainers.image.version": $version,
			   "org.opencontainers.image.licenses": "MIT"}},
	 rootfs: {type: "layers", diff_ids: [$layer.digest]},
	 history: [{created: $created, created_by: "scripts/package/oci.sh"}]}' >"$stage/config"
config=$(descriptor $kind.config.v1+json "$stage/config")
jq -cnS --arg type $kind.manifest.v1+json --argjson config "$config" --argjson layer "$layer" '
	{schemaVersion: 2, mediaType: $type, config: $config, layers: [$layer]}' >"$stage/manifest"
manifest=$(descriptor $kind.manifest.v1+json "$stage/manifest" "+ {
	annotations: {\"org.opencontainers.image.ref.name\": \"$version\"},
	platform: {architecture: \"$arch\", os: \"linux\"}}")
jq -cnS --arg type $kind.index.v1+json --argjson manifest "$manifest" '
	{schemaVersion: 2, mediaType: $type, manifests: [$manifest]}' >"$new/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$new/oci-layout"

rm -rf "$dir"
mkdir -p "$(dirname -- "$dir")"
mv "$new" "$dir"
