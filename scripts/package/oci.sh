#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/package/oci.sh VERSION BUILD DIR - makes DIR, an OCI image layout with one image, tagged VERSION.  The
# image has only libfiberize.so, libfiberize-preload.so and "install" from BUILD, in /usr/lib/fiberize, and the
# licence.  Pods use it as an image volume, or as an init container, which runs "install DIR".  Needs jq and
# binutils.
#
# Equal files and an equal SOURCE_DATE_EPOCH (default: the time of the last commit, or 0) make equal bytes.
set -eu
umask 022
export LC_ALL=C TZ=UTC
version=$1 build=$2 dir=$3
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
epoch=${SOURCE_DATE_EPOCH-$(git -C "$root" log -1 --format=%ct 2>/dev/null)} || epoch=
epoch=${epoch:-0}

die()
{
	echo "oci.sh: $*" >&2
	exit 1
}

# Take the architecture from the files: they may be for another machine than this one.
arch=
for name in libfiberize.so libfiberize-preload.so install; do
	case $(readelf -h "$build/$name" | sed -n 's/^ *Machine: *//p') in
	*X86-64) one=amd64 ;;
	AArch64) one=arm64 ;;
	*) die "$build/$name: for a machine that has no name here" ;;
	esac
	[ "${arch:-$one}" = $one ] || die "$build: $name is for $one, the others are for $arch"
	arch=$one
done

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
tree=$stage/tree
new=$stage/layout
mkdir -p "$tree/usr/lib/fiberize" "$tree/usr/share/doc/fiberize" "$new/blobs/sha256"
# Strip the files as in the Debian package; debuggers find the symbols by the build id.
for name in libfiberize.so libfiberize-preload.so install; do
	"${OBJCOPY:-objcopy}" --strip-unneeded --remove-section=.comment --remove-section=.note "$build/$name" \
		"$tree/usr/lib/fiberize/$name"
done
cp "$root/LICENSE" "$tree/usr/share/doc/fiberize/copyright"
chmod -R u=rwX,go=rX "$tree"
chmod 644 "$tree"/usr/lib/fiberize/*.so
chmod 755 "$tree/usr/lib/fiberize/install"

# The layer is not compressed, because the output of a compressor depends on its version.
(cd "$tree" && tar --create --format=ustar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
	--file="$stage/layer" usr)

# blob FILE: copies FILE to the blobs, and prints its digest
blob()
{
	sum=$(sha256sum <"$1")
	sum=${sum%% *}
	cp "$1" "$new/blobs/sha256/$sum"
	echo "sha256:$sum"
}

# descriptor TYPE FILE [FILTER]: copies FILE to the blobs, and prints its OCI descriptor, changed by a jq FILTER
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
	 config: {User: "65534:65534", Entrypoint: ["/usr/lib/fiberize/install"],
		  Labels: {"org.opencontainers.image.title": "fiberize",
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
