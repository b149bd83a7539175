#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/install.sh - what "make install" puts somewhere works there, and
# "make uninstall" takes all of it away again; the package, the completion for
# bash, and the examples for systemd and containers.
set -u
cd "$(dirname "$0")/../.." || exit 1
# The directory has a blank in it, as a packager's may.
work=$(mktemp -d "${TMPDIR:-/tmp}/fz install.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

build=${FZ_BUILD:-$PWD/build}
unset LD_PRELOAD

fail()
{
	echo "install.sh: $*"
	exit 1
}

# Not a part of the make that runs us.
run_make()
{
	env -u MAKEFLAGS -u MAKELEVEL make -s "$@" >"$work/log" 2>&1 ||
		{ cat "$work/log"; fail "make $* failed"; }
	[ ! -s "$work/log" ] || { cat "$work/log"; fail "make -s $1 is not quiet"; }
}

# Everybody may read it, whatever the umask of who installs it.
(umask 077; run_make install DESTDIR="$work/dest" PREFIX=/usr) || exit 1
left=$(find "$work/dest/usr" ! -perm -a=r -o -type d ! -perm -a=x)
[ -z "$left" ] || fail "not for everybody: $left"
(cd "$work/dest" && find . -type f | sort) >"$work/have"
cat >"$work/want" <<END
./usr/bin/fiberize
./usr/lib/fiberize/libfiberize.so
./usr/libexec/fiberize/bench.sh
./usr/libexec/fiberize/echo_client
./usr/libexec/fiberize/figures.awk
./usr/libexec/fiberize/measure
./usr/libexec/fiberize/median.awk
./usr/libexec/fiberize/report.awk
./usr/share/bash-completion/completions/fiberize
./usr/share/doc/fiberize/examples/fiberize.conf
./usr/share/doc/fiberize/examples/seccomp.json
./usr/share/man/man1/fiberize.1
./usr/share/man/man7/libfiberize.7
END
diff "$work/want" "$work/have" || fail "other files than expected"

# LD_PRELOAD cannot name a file with a blank, so it is run from elsewhere.
plain=$(mktemp -d /tmp/fz-install.XXXXXX) || exit 1
trap 'rm -rf "$work" "$plain"' EXIT
cp -a "$work/dest/usr/." "$plain/"
(
	cd / || exit 1
	unset LD_PRELOAD
	"$plain/bin/fiberize" true || fail "fiberize true: exit status $?"
	maps=$("$plain/bin/fiberize" cat /proc/self/maps)
	case $maps in
	*"$plain/lib/fiberize/libfiberize.so"*)	;;
	*)	fail "the installed library is not loaded" ;;
	esac
	version=$("$plain/bin/fiberize" --version) || fail "--version: exit status $?"
	[ -n "$version" ] || fail "--version says nothing"
	"$plain/bin/fiberize" --help >/dev/null || fail "--help: exit status $?"
) || exit 1

# ---- manuals and examples

groff -man -ww -z -Tutf8 "$work/dest/usr/share/man/man1/fiberize.1" \
	"$work/dest/usr/share/man/man7/libfiberize.7" >"$work/log" 2>&1
[ ! -s "$work/log" ] || { cat "$work/log"; fail 'groff complains'; }
examples=$work/dest/usr/share/doc/fiberize/examples
jq -e '.action == "SCMP_ACT_ALLOW" and (.names | length) == 3 and
	all(.names[]; startswith("io_uring_"))' "$examples/seccomp.json" >/dev/null ||
	fail 'seccomp.json'
# As its comment says to use it.
printf '{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}\n' |
	jq -e --slurpfile one "$examples/seccomp.json" '.syscalls += $one |
		[.syscalls[].names[]] | contains(["read", "io_uring_setup"])' >/dev/null ||
	fail 'seccomp.json cannot be appended'

# verified KEY: what systemd has to say of a unit with our drop-in and one more line
units=$plain/units
verified()
{
	mkdir -p "$units/one.service.d"
	printf '[Unit]\nDescription=one\n[Service]\nExecStart=/bin/true\n' >"$units/one.service"
	{ cat "$examples/fiberize.conf"; echo "$1"; } >"$units/one.service.d/fiberize.conf"
	SYSTEMD_UNIT_PATH=$units: timeout -k 5 60 systemd-analyze verify one.service \
		>"$units/log" 2>&1
	set -- $?
	# It looks at other units too, and complains of them.
	grep -F -e one.service -e fiberize.conf "$units/log"
	return "$1"
}
grep -q '^Environment=LD_PRELOAD=/usr/lib/fiberize/libfiberize.so$' "$examples/fiberize.conf" ||
	fail 'the drop-in names no library'
log=$(verified '') || fail "systemd-analyze: $log"
[ -z "$log" ] || fail "systemd-analyze: $log"
log=$(verified 'Envirment=A=1')
[ -n "$log" ] || fail 'systemd-analyze does not look at the drop-in'

# ---- completion

# completes WORDS WANTED: the last of WORDS is completed to WANTED, among others
completes()
{
	local got
	# Expanded by the inner shell.
	# shellcheck disable=SC2016
	got=$(PATH=$plain/bin:$PATH bash -c '
		. "$1"
		eval "COMP_WORDS=($2)"
		COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
		_fiberize
		printf "%s\n" "${COMPREPLY[@]}"' - \
		"$work/dest/usr/share/bash-completion/completions/fiberize" "$1" | sort -u | tr '\n' ' ')
	case " $got" in
	*" $2 "*)	;;
	*)	fail "completion of <$1>: <$got>, without $2" ;;
	esac
}
completes 'fiberize --pro' --processors
completes 'fiberize --dr' --dry-run
for flag in $("$build/fiberize" --help | grep -o -e ' --[a-z][a-z-]*'); do
	completes 'fiberize -' "$flag"
done
completes 'fiberize che' check
completes 'fiberize prin' printf
completes 'fiberize -p 2 --verbose prin' printf
completes 'fiberize -p ""' 4
completes 'fiberize check --j' --json
completes "fiberize check $plain/bin/fib" "$plain/bin/fiberize"
completes "fiberize --library $plain/lib/fib" "$plain/lib/fiberize"
completes "fiberize cat $plain/bin/fib" "$plain/bin/fiberize"
completes 'fiberize --backend ""' uring
completes 'fiberize --backend = e' epoll
completes 'fiberize --io ""' direct
completes 'fiberize --without r' rwf-nowait
completes 'fiberize --processors = 3 prin' printf
completes 'fiberize --stats = 1 prin' printf
completes 'fiberize check --h' --help
completes 'fiberize bench --echo --connections 12 --rou' --rounds
completes 'fiberize bench --connections = 12 -- prin' printf
completes "fiberize bench --json $plain/bin/fib" "$plain/bin/fiberize"
for flag in $("$build/fiberize" bench --help | grep -o -e '^  --[a-z][a-z-]*'); do
	completes 'fiberize bench -' "$flag"
done

# ---- the package

if command -v dpkg-shlibdeps >/dev/null; then
	run_make deb
	deb=$(ls "$build"/fiberize_*.deb)
	dpkg-deb -x "$deb" "$work/package"
	(cd "$work/package" && find . -type f | sed 's/\.gz$//' | sort) >"$work/have"
	{
		cat "$work/want"
		echo ./usr/share/doc/fiberize/changelog
		echo ./usr/share/doc/fiberize/copyright
	} | sort >"$work/want.deb"
	diff "$work/want.deb" "$work/have" || fail 'the package has other files'
	dpkg-deb -I "$deb" >"$work/log"
	grep -q 'Depends: .*libc6 (>= 2\.[0-9]*).*libelf1' "$work/log" ||
		fail "the package depends on $(grep Depends "$work/log")"
	mkdir "$plain/package"
	cp -a "$work/package/usr" "$plain/package"
	"$plain/package/usr/bin/fiberize" check true >/dev/null || fail 'check in the package'
	maps=$("$plain/package/usr/bin/fiberize" cat /proc/self/maps)
	case $maps in
	*"$plain/package/usr/lib/fiberize/libfiberize.so"*)	;;
	*)	fail 'the library of the package is not loaded' ;;
	esac
	if command -v lintian >/dev/null; then
		timeout -k 5 100 lintian --fail-on error,warning --tag-display-limit 0 "$deb" \
			>"$work/log" 2>/dev/null || { cat "$work/log"; fail 'lintian'; }
	fi
	rm -f "$deb"
fi

run_make uninstall DESTDIR="$work/dest" PREFIX=/usr
left=$(cd "$work/dest" && find . ! -type d)
[ -z "$left" ] || fail "uninstall leaves $left"
left=$(find "$work/dest" -type d -name '*fiberize*')
[ -z "$left" ] || fail "uninstall leaves $left"
# Twice does no harm.
run_make uninstall DESTDIR="$work/dest" PREFIX=/usr

for prefix in "/it's" '/a&b' '/a\b' '/a#b'; do
	env -u MAKEFLAGS -u MAKELEVEL make -s install DESTDIR="$work/odd" PREFIX="$prefix" \
		>"$work/log" 2>&1 && fail "it can be installed in $prefix"
	grep -qF "$work/odd$prefix: " "$work/log" || { cat "$work/log"; fail "no reason why"; }
	[ ! -e "$work/odd" ] || fail "something is left of $prefix"
done
