#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/preload/everywhere_programs.sh [PATTERN] - every program of /usr/bin and /usr/sbin, started with --version and
# with --help, with libfiberize-preload.so in /etc/ld.so.preload and without: output and exit status are the same.
# Takes minutes: make check-all.
#
# The programs run as nobody who may become anybody else, in namespaces without a network, with file systems for
# temporary files and shared memory of their own, standard input from /dev/null and no terminal. What differs between two runs without
# the stub, a time for example, is not compared; Perl gives the keys of a hash in the same order each time.

# shellcheck source=tests/lib/everywhere.inc
. "$(dirname "$0")/../../lib/everywhere.inc"
need setpriv unshare setsid xargs
pattern=${1-*}

# Those that do something instead of printing, or never end.
never=' halt init poweroff reboot runlevel shutdown telinit sulogin agetty getty login su yes instmodsh '
never+='debconf-apt-progress jconsole mvnDebug pam-auth-update mysql_secure_installation mariadb-secure-installation '
install -m 755 "$watch" "$work/watch"
mkdir "$work/tmp" "$work/native" "$work/stub" "$work/again"
must mount -t tmpfs -o mode=1777 none "$work/tmp"
at_exit umount -l "$work/tmp"
# Chromium prints how much is free there, which changes with whatever else runs on the machine.
must mount -t tmpfs -o mode=1777 none /dev/shm
at_exit umount -l /dev/shm

cat >"$work/one" <<'SH'
#!/bin/bash
# one DIRECTORY PROGRAM OPTION: runs it, and leaves what it prints and its exit status in the directory
out=$1/${2//\//,}$3
# Its own home, of the same name each time.
export HOME=$TMPDIR/${2//\//,}$3
rm -rf "$HOME"
mkdir -m 777 "$HOME" && cd "$HOME" || exit 1
export TMPDIR=$HOME
setsid -w setpriv --reuid 65534 --regid 65534 --clear-groups --no-new-privs --bounding-set=-all --pdeathsig KILL \
	"$WATCH" "$2" "$3" >"$out" 2>&1 </dev/null
echo "status $?" >>"$out"
SH
chmod 755 "$work/one"

for program in /usr/bin/* /usr/sbin/*; do
	name=${program##*/}
	# shellcheck disable=SC2053 # a pattern
	if [[ $name == $pattern && $never != *" $name "* && -f $program && -x $program ]]; then
		printf '%s\0--version\0%s\0--help\0' "$program" "$program"
	fi
done >"$work/list"

# all_into DIRECTORY: runs all of the list
all_into()
{
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C PERL_HASH_SEED=0 WATCH="$work/watch" TMPDIR="$work/tmp" \
		xargs -0 -n 2 -P "$(($(nproc) * 2))" "$work/one" "$1" <"$work/list"
	# What is left of a program that went into the background.
	kill -KILL -1 2>/dev/null
	find "$work/tmp" -mindepth 1 -delete
}

profile '[no-such-program]' 'everywhere = 1'
not_named
all_into "$work/native"
named
cat /proc/self/maps >"$work/maps"
has 'they had the stub' "$work/maps" '/libfiberize-preload.so'
all_into "$work/stub"
not_named

# lines_are NATIVE OTHER: both have the same lines. Their order is not that of one process where several write,
# and that of a hash, in Perl, is another one in each run. Dots one after the other may show how long a program waits.
lines_are()
{
	cmp -s "$1" "$2" || cmp -s <(tr -s . <"$1" | LC_ALL=C sort) <(tr -s . <"$2" | LC_ALL=C sort)
}

differ=()
count=0
for file in "$work/native/"*; do
	count=$((count + 1))
	lines_are "$file" "$work/stub/${file##*/}" || differ+=("${file##*/}")
done
for name in "${differ[@]}"; do
	option=--${name##*--}
	program=${name%--*}
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C PERL_HASH_SEED=0 WATCH="$work/watch" TMPDIR="$work/tmp" \
		"$work/one" "$work/again" "${program//,//}" "$option"
	if lines_are "$work/native/$name" "$work/again/$name"; then
		fail "$name" "differs: $(diff "$work/native/$name" "$work/stub/$name" | head -n 4)"
	elif [ "$(tail -n 1 "$work/native/$name")" != "$(tail -n 1 "$work/again/$name")" ]; then
		skip "$name" 'its exit status is not the same twice without the stub'
	else
		same "$name: status" "$(tail -n 1 "$work/native/$name")" "$(tail -n 1 "$work/stub/$name")"
	fi
done
[ "$count" -gt 0 ] && pass "$count runs, $((count - ${#differ[@]})) with the same lines"
finish
