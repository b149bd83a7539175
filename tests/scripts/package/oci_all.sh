#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/package/oci_all.sh - the OCI image for amd64 and arm64: the same bytes each time, a layout that holds what it
# says, of which podman takes the image of the architecture that is asked for; the other architecture's program runs by
# qemu.  Of arm64 it has what "make oci-all" builds, or small files in their place if that was not run.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
need jq readelf aarch64-linux-gnu-gcc qemu-aarch64
[ "$(uname -m)" = x86_64 ] || { skip 'two architectures' 'the cross compiler is for x86-64 alone'; finish; }
make_image=$root/scripts/package/oci.sh
export SOURCE_DATE_EPOCH=1700000000

arm=$build/aarch64
if ! [ -e "$arm/install" ] || ! [ -e "$arm/libfiberize-preload.so" ]; then
	arm=$work/arm
	mkdir "$arm"
	for name in libfiberize libfiberize-preload; do
		echo "const char fz_name[] = \"$name\";" >"$work/small.c"
		must aarch64-linux-gnu-gcc -shared -nostdlib -fPIC -o "$arm/$name.so" "$work/small.c"
	done
	must aarch64-linux-gnu-gcc -std=gnu11 -D_GNU_SOURCE -Os -static -o "$arm/install" "$root/scripts/kubernetes/install.c"
fi
must "$make_image" 1.2.3 "$build" "$arm" "$work/one"
mkdir -p "$work/elsewhere/b" "$work/elsewhere/c"
cp "$library" "$build/libfiberize-preload.so" "$build/install" "$work/elsewhere/b"
cp "$arm/libfiberize.so" "$arm/libfiberize-preload.so" "$arm/install" "$work/elsewhere/c"
(
	umask 077
	cd "$work/elsewhere" && TZ=Asia/Tokyo TMPDIR=$work/elsewhere "$make_image" 1.2.3 b c two
) || fail 'made elsewhere' "exit status $?"
same 'twice the same' '' "$(diff -r "$work/one" "$work/elsewhere/two" 2>&1)"

# ---- what is in it

blobs=$work/one/blobs/sha256
# blob FILE FILTER: the digest that the filter finds there, as a file
blob()
{
	jq -r "$2 | sub(\"sha256:\"; \"\")" "$1" | sed "s#^#$blobs/#"
}
index=$(blob "$work/one/index.json" '.manifests[0].digest')
same 'the tag names an index' '1 1.2.3 application/vnd.oci.image.index.v1+json' "$(jq -r '"\(.manifests | length) " +
	(.manifests[0] | "\(.annotations["org.opencontainers.image.ref.name"]) \(.mediaType)")' "$work/one/index.json")"
same 'an image for each' 'amd64 linux arm64 linux' "$(jq -r '.manifests[].platform | "\(.architecture) \(.os)"' "$index" | xargs)"
for arch in amd64 arm64; do
	manifest=$(blob "$index" ".manifests[] | select(.platform.architecture == \"$arch\").digest")
	same "$arch: its config" "$arch 1.2.3" "$(jq -r '"\(.architecture) \(.config.Labels["org.opencontainers.image.version"])"' \
		"$(blob "$manifest" .config.digest)")"
	mkdir "$work/$arch"
	tar -xf "$(blob "$manifest" '.layers[0].digest')" -C "$work/$arch"
	same "$arch: its files" "$(sed 's/amd64/X86-64/; s/arm64/AArch64/' <<<"$arch")" \
		"$(cd "$work/$arch/usr/lib/fiberize" && readelf -h install libfiberize.so libfiberize-preload.so |
			sed -n 's/.*Machine: .*\(X86-64\|AArch64\)$/\1/p' | sort -u)"
done
wrong=
for file in "$blobs"/*; do
	[ "$(sha256sum <"$file")" = "${file##*/}  -" ] || wrong="$wrong $file"
done
same 'each blob has its digest for a name' '' "$wrong"
mapfile -t images < <(blob "$index" '.manifests[].digest')
said=$(jq -r '.. | objects | select(.digest) | "\(.digest | sub("sha256:"; "")) \(.size)"' "$work/one/index.json" "$index" \
	"${images[@]}" | sort)
same 'descriptors: all blobs, and their sizes' "$(cd "$blobs" && stat -c '%n %s' -- * | sort)" "$said"
mkdir "$work/volume"
run qemu-aarch64 "$work/arm64/usr/lib/fiberize/install" "$work/volume" "$work/arm64/usr/lib/fiberize"
same 'arm64: install runs' '0:: libfiberize-preload.so libfiberize.so' \
	"$code:$out:$err $(find "$work/volume" -type f -printf '%f\n' | sort | xargs)"

# ---- who takes it

run "$fiberize" kubernetes --image a --layout "$work/one"
like 'kubernetes: both architectures' "0:*\['amd64', 'arm64'\]*" "$code:$out"
run "$fiberize" kubernetes --image a --layout "$work/one" --arch arm64
like 'kubernetes: one of them' "0:*\['arm64'\]*" "$code:$out"
refused 'kubernetes: another architecture' 102 '*one: an image for amd64 arm64, not for riscv64;*' \
	"$fiberize" kubernetes --image a --layout "$work/one" --arch riscv64
if command -v podman >/dev/null; then
	# It takes a path with capital letters for a wrong name.
	cd "$work" || exit 1
	pod=(podman --root "$work/storage" --runroot "$work/runroot" --storage-driver vfs)
	for arch in amd64 arm64; do
		run "${pod[@]}" pull --quiet --arch $arch oci:one:1.2.3
		same "podman: $arch" "0:$arch" "$code:$("${pod[@]}" inspect --format '{{.Architecture}}' "$out" 2>&1)"
	done
	run "${pod[@]}" pull --quiet --arch riscv64 oci:one:1.2.3
	like 'podman: another architecture' '*no image found in * for architecture riscv64*' "$err"
else
	skip 'podman' 'podman is not installed'
fi

# ---- what no image is made of

run "$make_image" 1 "$build" "$work/elsewhere/b" "$work/none"
same 'two builds for one architecture' "1:oci.sh: $work/elsewhere/b: for amd64, as another one before it" "$code:$err"
run env OBJCOPY=false "$make_image" 1 "$build" "$arm" "$work/none"
like 'no objcopy for it' "1:*/libfiberize.so: false cannot strip it; install the binutils for amd64" "$code:$err"
run "$make_image" 1 "$build"
like 'no folder' '1:oci.sh: usage: *' "$code:$err"
yes 'nothing half done' [ ! -e "$work/none" ]
finish
