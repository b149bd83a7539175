#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/package/oci.sh - the OCI image with the library: the same bytes each time, a layout that holds what it
# says, and a program of another image that runs with it, by crun, under seccomp profiles with and without io_uring.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/container.inc
. "$(dirname "$0")/../../lib/container.inc"
need jq umoci crun systemd-analyze unshare readelf
make_image=$root/scripts/package/oci.sh

# ---- the image

export SOURCE_DATE_EPOCH=1700000000
must "$make_image" 1.2.3 "$build" "$work/one"
mkdir -p "$work/elsewhere/b"
cp "$library" "$build/libfiberize-preload.so" "$build/install" "$work/elsewhere/b"
(
	umask 077
	cd "$work/elsewhere" && LANG=tr_TR.UTF-8 TZ=Asia/Tokyo TMPDIR=$work/elsewhere "$make_image" 1.2.3 b two
) || fail 'made elsewhere' "exit status $?"
same 'twice the same' '' "$(diff -r "$work/one" "$work/elsewhere/two" 2>&1)"
same 'the same modes' "$(cd "$work/one" && find . -printf '%m %p\n' | sort)" \
	"$(cd "$work/elsewhere/two" && find . -printf '%m %p\n' | sort)"
SOURCE_DATE_EPOCH=1 must "$make_image" 1.2.3 "$build" "$work/old"
yes 'another time is another image' [ -n "$(diff -r "$work/one" "$work/old")" ]

# only TOOL...: a folder with these tools and no others
only()
{
	rm -rf "$work/tools"
	mkdir "$work/tools"
	for tool; do
		ln -s "$(command -v "$tool")" "$work/tools"
	done
}
for missing in jq readelf; do
	# shellcheck disable=SC2046
	only dirname readlink $(printf '%s\n' jq readelf | grep -v $missing)
	run env PATH="$work/tools" "$make_image" 1.2.3 "$build" "$work/none"
	same "without $missing" "1:oci.sh: $missing is not installed; scripts/dev/deps.sh oci installs what images need" "$code:$err"
	yes "without $missing: nothing is made" [ ! -e "$work/none" ]
done
only make
for target in oci-all deb-arm64; do
	run env -u MAKEFLAGS -u MAKELEVEL PATH="$work/tools" make -s -C "$root" -o "$build/libfiberize.so" \
		-o "$build/libfiberize-preload.so" -o "$build/install" B="$build" AARCH64_ROOT="$work/sysroot" $target
	like "$target without the cross compiler" '2:*aarch64-linux-gnu-gcc is not installed; scripts/dev/deps.sh oci installs it*' "$code:$err"
	yes "$target without the cross compiler: nothing is fetched" [ ! -e "$work/sysroot" ]
done

blobs=$work/one/blobs/sha256
wrong=
for file in "$blobs"/*; do
	[ "$(sha256sum <"$file")" = "${file##*/}  -" ] || wrong="$wrong $file"
done
same 'each blob has its digest for a name' '' "$wrong"
# Of each descriptor, from the index on: the digest and the size.
manifest=$(jq -r '.manifests[0].digest | sub("sha256:"; "")' "$work/one/index.json")
said=$(jq -r '.. | objects | select(.digest) | "\(.digest | sub("sha256:"; "")) \(.size)"' \
	"$work/one/index.json" "$blobs/$manifest" | sort)
same 'descriptors: all blobs, and their sizes' "$(cd "$blobs" && stat -c '%n %s' -- * | sort)" "$said"
config=$(jq -r '.config.digest | sub("sha256:"; "")' "$blobs/$manifest")
case $(uname -m) in
x86_64) arch=amd64 ;;
*) arch=arm64 ;;
esac
same 'the config' "$arch linux 1.2.3 2023-11-14T22:13:20Z" \
	"$(jq -r '"\(.architecture) \(.os) \(.config.Labels["org.opencontainers.image.version"]) \(.created)"' "$blobs/$config")"

run umoci unpack --rootless --image "$work/one:1.2.3" "$work/unpacked"
same 'umoci unpacks it' 0 "$code"
same 'these files and no others' '644 usr/lib/fiberize/libfiberize-preload.so
644 usr/lib/fiberize/libfiberize.so
644 usr/share/doc/fiberize/copyright
755 usr/lib/fiberize/install' "$(cd "$work/unpacked/rootfs" && find . -type f -printf '%m %P\n' | sort)"
shipped=$work/unpacked/rootfs/usr/lib/fiberize/libfiberize.so
same 'the library has the same symbols' "$(readelf -W --dyn-syms "$library" | sort)" \
	"$(readelf -W --dyn-syms "$shipped" | sort)"

# ---- what no image is made of

mkdir "$work/text" "$work/two"
echo text >"$work/text/libfiberize.so"
run "$make_image" 1 "$work/text" "$work/none"
same 'no library: exit status' 1 "$code"
like 'no library: message' '*for a machine that has no name here*' "$err"
yes 'no library: nothing half done' [ ! -e "$work/none" ]
cp "$library" "$build/libfiberize-preload.so" "$work/two"
# The machine is the half word at 18: this one is AArch64, or x86-64 where we are that.
case $arch in
amd64) machine='\0267' ;;
*) machine='\076' ;;
esac
cp "$build/install" "$work/two/install"
printf %b "$machine" | dd of="$work/two/install" bs=1 seek=18 conv=notrunc status=none
run "$make_image" 1 "$work/two" "$work/none"
same 'files for two machines: exit status' 1 "$code"
like 'files for two machines: message' '*two: install is for *, the others are for *' "$err"
yes 'files for two machines: nothing half done' [ ! -e "$work/none" ]

# ---- a program of another image

rootfs=$work/bundle/rootfs
mkdir -p "$rootfs"/{bin,dev,proc,usr/lib/fiberize}
must cp "$helpers/busy" "$rootfs/bin/oci-server"
for file in $(ldd "$helpers/busy" | grep -o '/[^ ]*'); do
	mkdir -p "$rootfs/${file%/*}"
	cp "$file" "$rootfs/$file"
done
before=$(cd "$rootfs" && find . -type f -exec sha256sum {} + | sort)

# As the default profiles of Docker and podman do: what is not listed fails, and io_uring is not listed.
systemd-analyze syscall-filter @known | sed -n 's/^  *\([a-z0-9_]*\)$/\1/p' | grep -v '^io_uring_' |
	jq -Rn '{defaultAction: "SCMP_ACT_ERRNO", syscalls: [{names: [inputs], action: "SCMP_ACT_ALLOW"}]}' \
		>"$work/without.json"
jq --slurpfile one "$root/scripts/package/seccomp.json" '.syscalls += $one' "$work/without.json" >"$work/with.json"

# bundle VOLUME PROFILE [VARIABLE]
bundle()
{
	(cd "$work/bundle" && rm -f config.json && crun spec)
	jq --arg volume "$1" --slurpfile profile "$2" --arg variable "${3-}" '
		.process.terminal = false | .process.args = ["/bin/oci-server", "idle"] |
		.process.env += [$variable | select(. != "")] | del(.linux.resources) |
		.linux.seccomp = $profile[0] |
		.mounts = [{destination: "/proc", type: "proc", source: "proc"},
			   {destination: "/usr/lib/fiberize", type: "bind", source: $volume, options: ["bind", "ro"]}]' \
		"$work/bundle/config.json" >"$work/config" && mv "$work/config" "$work/bundle/config.json"
}

# crun wants one hierarchy of control groups; those of this namespace are its own.
cat >"$work/enter" <<'ENTER'
mount --make-rprivate / && umount -R /sys/fs/cgroup && mount -t cgroup2 cgroup2 /sys/fs/cgroup &&
	exec crun --root "$1/crun" --cgroup-manager=disabled run --bundle "$1/bundle" "oci-$2"
ENTER

# recorded FILE: sets child to the first process of the container, which crun writes there
recorded()
{
	child=$(jq .pid "$1" 2>/dev/null)
	[ -n "$child" ]
}

started()
{
	[ -s "$work/said" ] || ! kill -0 "$pid" 2>/dev/null
}

stop()
{
	kill -KILL "$child" "$pid"
}
at_exit stop

# contained NAME: starts the bundle; sets row to what "fiberize status" says of its program, ended to how it
# ended if it did not start
contained()
{
	ended='' row=''
	launch unshare --mount --cgroup sh "$work/enter" "$work" "$1-$$"
	must eventually started
	if [ ! -s "$work/said" ]; then
		ended=$(tail -n 1 "$work/complaints")
		return
	fi
	must eventually recorded "$work/crun/oci-$1-$$/status"
	must eventually seen
	kill -KILL "${child:-$pid}"
	wait "$pid" 2>/dev/null
}

preload=LD_PRELOAD=/usr/lib/fiberize/libfiberize.so
child='' pid=''
bundle "${shipped%/*}" "$work/with.json"
contained native
if [ -n "$ended" ]; then
	skip 'a program of another image' "crun cannot run a container here: $ended"
	finish
	exit
fi
same 'without LD_PRELOAD: natively' '' "$row"
run "$fiberize" check --json "$helpers/busy"
bundle "${shipped%/*}" "$work/with.json" $preload
contained with
same 'a profile with seccomp.json' "oci-server $(jq -r .backend <<<"$out") 5" "$row"
bundle "${shipped%/*}" "$work/without.json" $preload
contained without
same 'a profile without' 'oci-server epoll 5' "$row"
# As in a pod: the image's own program fills a volume that is empty, and the library for any program is named.
mkdir -m 1777 "$work/volume"
(umask 077 && exec "$work/unpacked/rootfs/usr/lib/fiberize/install" "$work/volume" "${shipped%/*}") >"$work/said" 2>&1
same 'install: two files that all may read' '0::644 libfiberize-preload.so;644 libfiberize.so;' \
	"$?:$(cat "$work/said"):$(cd "$work/volume" && find . -type f -printf '%m %P\n' | sort | tr '\n' ';')"
bundle "$work/volume" "$work/with.json" ${preload%/*}/libfiberize-preload.so
contained volume
same 'the volume: libfiberize-preload.so' "oci-server $(jq -r .backend <<<"$out") 5" "$row"
# Profiles as the kubelet lays out a ConfigMap: links to a directory that it replaces whole.
mkdir -m 1777 "$work/profiles" "$work/profiles/..2026_11_26"
printf '[oci-server]\neverywhere = 0\n' >"$work/profiles/..2026_11_26/profiles.conf"
ln -s ..2026_11_26 "$work/profiles/..data"
ln -s ..data/profiles.conf "$work/profiles/profiles.conf"
jq --arg profiles "$work/profiles" '.mounts += [{destination: "/etc/fiberize", type: "bind", source: $profiles,
	options: ["bind", "ro"]}]' "$work/bundle/config.json" >"$work/config" && mv "$work/config" "$work/bundle/config.json"
contained profiles
same 'profiles of a ConfigMap take a program out' ':' "$ended:$row"
sed -i 's/oci-server/another/' "$work/profiles/..2026_11_26/profiles.conf"
contained others
same 'profiles of a ConfigMap for other programs' "oci-server $(jq -r .backend <<<"$out") 5" "$row"
mkdir "$work/nothing"
bundle "$work/nothing" "$work/with.json" $preload
contained missing
same 'an empty volume: it starts natively' ':' "$ended:$row"
like 'an empty volume: the loader says so' '*libfiberize.so*cannot be preloaded*' "$(cat "$work/complaints")"
same 'the other image is unchanged' "$before" "$(cd "$rootfs" && find . -type f -exec sha256sum {} + | sort)"
finish
