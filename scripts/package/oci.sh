#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/package/oci.sh VERSION BUILD... DIR - makes DIR, an OCI image layout with one image, tagged VERSION.  The
# image has only libfiberize.so, libfiberize-preload.so and "install" from BUILD, in /usr/lib/fiberize, and the
# licence.  Pods use it as an image volume, or as an init container, which runs "install DIR".  Needs jq and
# binutils, those of each architecture.
#
# With a BUILD for each of several architectures the tag names an index of an image for each.
#
# Equal files and an equal SOURCE_DATE_EPOCH (default: the time of the last commit, or 0) make equal bytes.
set -eu
umask 022
export LC_ALL=C TZ=UTC
version=$1
root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
epoch=${SOURCE_DATE_EPOCH-$(git -C "$root" log -1 --format=%ct 2>/dev/null)} || epoch=
epoch=${epoch:-0}

die()
{
	echo "oci.sh: $*" >&2
	exit 1
}

[ $# -ge 3 ] || die 'usage: oci.sh VERSION BUILD... DIR'
for tool in jq readelf; do
	command -v $tool >/dev/null || die "$tool is not installed; scripts/dev/deps.sh oci installs what images need"
done
shift

# look_at BUILD: sets arch to the architecture of its files; they may be for another machine than this one.
look_at()
{
	arch=
	for name in libfiberize.so libfiberize-preload.so install; do
		case $(readelf -h "$1/$name" | sed -n 's/^ *Machine: *//p') in
		*X86-64) one=amd64 triplet=x86_64-linux-gnu ;;
		AArch64) one=arm64 triplet=aarch64-linux-gnu ;;
		*) die "$1/$name: for a machine that has no name here" ;;
		esac
		[ "${arch:-$one}" = $one ] || die "$1: $name is for $one, the others are for $arch"
		arch=$one
	done
	objcopy=$triplet-objcopy
	command -v "$objcopy" >/dev/null || objcopy=objcopy
	objcopy=${OBJCOPY:-$objcopy}
}

stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
new=$stage/layout
mkdir -p "$new/blobs/sha256"
created=$(date -u -d "@$epoch" +%Y-%m-%dT%H:%M:%SZ)
kind=application/vnd.oci.image

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

# add_image BUILD: adds to the blobs an image of these files, and its descriptor, with the platform, to $stage/images
add_image()
{
	tree=$stage/tree
	rm -rf "$tree"
	mkdir -p "$tree/usr/lib/fiberize" "$tree/usr/share/doc/fiberize"
	# Strip the files as in the Debian package; debuggers find the symbols by the build id.
	for name in libfiberize.so libfiberize-preload.so install; do
		"$objcopy" --strip-unneeded --remove-section=.comment --remove-section=.note "$1/$name" \
			"$tree/usr/lib/fiberize/$name" || die "$1/$name: $objcopy cannot strip it; install the binutils for $arch"
	done
	cp "$root/LICENSE" "$tree/usr/share/doc/fiberize/copyright"
	chmod -R u=rwX,go=rX "$tree"
	chmod 644 "$tree"/usr/lib/fiberize/*.so
	chmod 755 "$tree/usr/lib/fiberize/install"

	# The layer is not compressed, because the output of a compressor depends on its version.
	(cd "$tree" && tar --create --format=ustar --sort=name --mtime="@$epoch" --owner=0 --group=0 --numeric-owner \
		--file="$stage/layer" usr)
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
	descriptor $kind.manifest.v1+json "$stage/manifest" "+ {platform: {architecture: \"$arch\", os: \"linux\"}}" \
		>>"$stage/images"
}

# index: prints an index of the descriptors on standard input
index()
{
	jq -csS --arg type $kind.index.v1+json '{schemaVersion: 2, mediaType: $type, manifests: .}'
}

all=
while [ $# -gt 1 ]; do
	look_at "$1"
	case " $all " in
	*" $arch "*) die "$1: for $arch, as another one before it" ;;
	esac
	all="$all $arch"
	add_image "$1"
	shift
done
dir=$1
if [ "$(wc -l <"$stage/images")" -gt 1 ]; then
	index <"$stage/images" >"$stage/index"
	descriptor $kind.index.v1+json "$stage/index" >"$stage/images"
fi
jq -c --arg version "$version" '.annotations = {"org.opencontainers.image.ref.name": $version}' "$stage/images" |
	index >"$new/index.json"
printf '{"imageLayoutVersion":"1.0.0"}' >"$new/oci-layout"

rm -rf "$dir"
mkdir -p "$(dirname -- "$dir")"
mv "$new" "$dir"
