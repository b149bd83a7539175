#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/package/install.sh - what "make install" puts somewhere works there, and
# "make uninstall" takes all of it away again; the package, the completion for
# bash, and the examples for systemd and containers.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
cd "$root" || exit 1
# LD_PRELOAD cannot name a file with a blank, so what is installed is run from elsewhere.
plain=$work/plain
# This directory has a blank in it, as a packager's may.
packager="$work/a packager"
mkdir "$plain" "$packager"

# quiet_make WORDS...: not a part of the make that runs us
quiet_make()
{
	same "make $1: quiet" '0' \
		"$(env -u MAKEFLAGS -u MAKELEVEL make -s "$@" 2>&1; echo $?)"
}

# What a stale build is made of anew is for all users' tests, so not with that umask.
quiet_make all
# Everybody may read it, whatever the umask of who installs it.
old_umask=$(umask)
umask 077
quiet_make install DESTDIR="$packager" PREFIX=/usr
umask "$old_umask"
same 'everybody may read it' '' "$(find "$packager/usr" ! -perm -a=r -o -type d ! -perm -a=x)"
(cd "$packager" && find . ! -type d | LC_ALL=C sort) >"$work/have"
multiarch=$($CC -print-multiarch)
cat >"$work/want" <<END
./usr/bin/fiberize
./usr/lib/fiberize/lib/$multiarch/libfiberize-preload.so
./usr/lib/fiberize/lib/$multiarch/libfiberize.so
./usr/lib/fiberize/lib/i386-linux-gnu/libfiberize-preload.so
./usr/lib/fiberize/lib/i386-linux-gnu/libfiberize.so
./usr/lib/fiberize/lib/libfiberize-preload.so
./usr/lib/fiberize/lib/libfiberize.so
./usr/lib/fiberize/lib32/libfiberize-preload.so
./usr/lib/fiberize/lib32/libfiberize.so
./usr/lib/fiberize/lib64/libfiberize-preload.so
./usr/lib/fiberize/lib64/libfiberize.so
./usr/lib/fiberize/libfiberize-preload.so
./usr/lib/fiberize/libfiberize.so
./usr/libexec/fiberize/bars.gp
./usr/libexec/fiberize/bench.sh
./usr/libexec/fiberize/charts.awk
./usr/libexec/fiberize/commit
./usr/libexec/fiberize/echo_client
./usr/libexec/fiberize/facts.awk
./usr/libexec/fiberize/figures.awk
./usr/libexec/fiberize/filter.awk
./usr/libexec/fiberize/inspect
./usr/libexec/fiberize/json.awk
./usr/libexec/fiberize/kubernetes.sh
./usr/libexec/fiberize/kubernetes/base/bindings.yaml
./usr/libexec/fiberize/kubernetes/base/kustomization.yaml
./usr/libexec/fiberize/kubernetes/base/policy.yaml
./usr/libexec/fiberize/kubernetes/base/warning.yaml
./usr/libexec/fiberize/kubernetes/by-hand/container.yaml
./usr/libexec/fiberize/kubernetes/by-hand/pod.yaml
./usr/libexec/fiberize/kubernetes/profiles.yaml
./usr/libexec/fiberize/leaks.awk
./usr/libexec/fiberize/markdown.awk
./usr/libexec/fiberize/measure
./usr/libexec/fiberize/median.awk
./usr/libexec/fiberize/page.awk
./usr/libexec/fiberize/ratios.gp
./usr/libexec/fiberize/record.awk
./usr/libexec/fiberize/reports.inc
./usr/libexec/fiberize/service.sh
./usr/libexec/fiberize/summary.awk
./usr/libexec/fiberize/table.awk
./usr/libexec/fiberize/unit.awk
./usr/libexec/fiberize/unit.sh
./usr/libexec/fiberize/effect.sh
./usr/libexec/fiberize/environment.awk
./usr/libexec/fiberize/verdict.awk
./usr/libexec/fiberize/words.awk
./usr/libexec/fiberize/wrk.lua
./usr/share/bash-completion/completions/fiberize
./usr/share/doc/fiberize/CHANGELOG.md
./usr/share/doc/fiberize/PODS.md
./usr/share/doc/fiberize/SECURITY.md
./usr/share/doc/fiberize/SERVICES.md
./usr/share/doc/fiberize/examples/alerts.yml
./usr/share/doc/fiberize/examples/cdi.json
./usr/share/doc/fiberize/examples/dashboard.json
./usr/share/doc/fiberize/examples/fiberize.conf
./usr/share/doc/fiberize/examples/profiles.conf
./usr/share/doc/fiberize/examples/seccomp.json
./usr/share/gdb/auto-load/usr/lib/fiberize/libfiberize.so-gdb.py
./usr/share/man/man1/fiberize.1
./usr/share/man/man7/libfiberize.7
END
LC_ALL=C sort -o "$work/want" "$work/want"
same 'these files and no others' '' "$(diff "$work/want" "$work/have")"

cp -a "$packager/usr/." "$plain/"
cd / || exit 1
prints 'it runs' '' "$plain/bin/fiberize" true
# shellcheck disable=SC2016 # the loader expands it
prints 'it names the library for each loader' "$plain/lib/fiberize/"'${LIB}/libfiberize.so' \
	"$plain/bin/fiberize" printenv LD_PRELOAD
run "$plain/bin/fiberize" cat /proc/self/maps
has 'the installed library is loaded' "$work/out" "$plain/lib/fiberize/libfiberize.so"
# shellcheck disable=SC2016 # the loader expands it
run env LD_PRELOAD="$plain/lib/fiberize/"'${LIB}/libfiberize-preload.so' cat /proc/self/maps
has 'the library for every program finds it' "$work/out" "$plain/lib/fiberize/libfiberize.so"
run "$plain/bin/fiberize" --version
like '--version' '0 ?*' "$code $out"
run "$plain/bin/fiberize" --help
like '--help' '0 ?*' "$code $out"
cd "$root" || exit 1

# ---- gdb's commands

if command -v gdb >/dev/null; then
	quiet_make install PREFIX="$plain/local"
	run gdb -batch -nx -iex "add-auto-load-safe-path $plain" \
		"$plain/local/lib/fiberize/libfiberize.so" -ex 'help info fibers'
	like 'gdb loads its commands with the library' '*Usage: info fibers*' "$out"
	quiet_make uninstall PREFIX="$plain/local"
	same 'uninstall leaves no file of gdb' '' "$(find "$plain/local" ! -type d)"
fi

# ---- manuals and examples

same 'groff has no complaints' '' "$(groff -man -ww -z -Tutf8 \
	"$packager/usr/share/man/man1/fiberize.1" "$packager/usr/share/man/man7/libfiberize.7" 2>&1)"
examples=$packager/usr/share/doc/fiberize/examples
same 'seccomp.json' true "$(jq '.action == "SCMP_ACT_ALLOW" and (.names | length) == 3 and
	all(.names[]; startswith("io_uring_"))' "$examples/seccomp.json")"
# As its comment says to use it.
same 'seccomp.json can be appended' true "$(printf \
	'{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"SCMP_ACT_ALLOW"}]}\n' |
	jq --slurpfile one "$examples/seccomp.json" '.syscalls += $one |
		[.syscalls[].names[]] | contains(["read", "io_uring_setup"])')"

# verified KEY: what systemd has to say of a unit with our drop-in and one more line
units=$plain/units
verified()
{
	mkdir -p "$units/one.service.d"
	printf '[Unit]\nDescription=one\n[Service]\nExecStart=/bin/true\n' >"$units/one.service"
	{ cat "$examples/fiberize.conf"; echo "$1"; } >"$units/one.service.d/fiberize.conf"
	SYSTEMD_UNIT_PATH=$units: limited systemd-analyze verify one.service \
		>"$units/log" 2>&1
	set -- $?
	# It looks at other units too, and complains of them.
	grep -F -e one.service -e fiberize.conf "$units/log"
	return "$1"
}
has 'the drop-in names the library' "$examples/fiberize.conf" \
	'^Environment=LD_PRELOAD=/usr/lib/fiberize/[$]{LIB}/libfiberize.so$'
same 'systemd-analyze takes the drop-in' 0 "$(verified ''; echo $?)"
like 'systemd-analyze looks at the drop-in' '?*' "$(verified 'Envirment=A=1')"

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
		"$packager/usr/share/bash-completion/completions/fiberize" "$1" | sort -u | tr '\n' ' ')
	like "completion of <$1>" "* $2 *" " $got"
}
completes 'fiberize --pro' --processors
completes 'fiberize --dr' --dry-run
for flag in $("$build/fiberize" --help | sed -n '/^ \{2,6\}-/p' | grep -o -e ' --[a-z][a-z-]*'); do
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
completes 'fiberize to' top
completes 'fiberize top --b' --batch
completes 'fiberize check --run' --running
completes 'fiberize check --ro' --root
completes 'fiberize ena' enable
completes 'fiberize disable --ro' --root
for service in /{etc,usr/lib}/systemd/system/??*.service; do
	service=${service##*/}
	service=${service%.service}
	completes "fiberize enable ${service::-1}" "$service"
	break
done
completes 'fiberize bench --echo --connections 12 --rou' --rounds
completes 'fiberize bench --connections = 12 -- prin' printf
completes "fiberize bench --json $plain/bin/fib" "$plain/bin/fiberize"
for flag in $("$build/fiberize" bench --help | grep -o -e '^  --[a-z][a-z-]*'); do
	completes 'fiberize bench -' "$flag"
done

for command in $(cd "$root" && sed -n 's/^FZ_COMMAND(\([a-z]*\),.*/\1/p' scripts/inspect/commands.def); do
	completes "fiberize ${command::-1}" "$command"
	like "$command --help" "usage: fiberize $command *" "$("$build/fiberize" "$command" --help)"
	for flag in $(cd "$root" && sed -n "s/^FZ_OPTION($command, \([a-z]*\),.*/--\1/p" scripts/inspect/commands.def); do
		completes "fiberize $command -" "$flag"
		like "$command --help knows $flag" "*  $flag*" "$("$build/fiberize" "$command" --help)"
	done
done
completes 'fiberize ps --state runs 1' 1
completes 'fiberize trace --seconds 3 -- prin' printf

# ---- the package

if command -v dpkg-shlibdeps >/dev/null; then
	quiet_make deb
	deb=$(ls "$build"/fiberize_*.deb)
	symbols=$(ls "$build"/fiberize-dbgsym_*.deb)
	dpkg-deb -x "$deb" "$work/package"
	(cd "$work/package" && find . ! -type d | sed 's/\.gz$//' | sort) >"$work/have"
	{
		cat "$work/want"
		echo ./usr/share/doc/fiberize/changelog
		echo ./usr/share/doc/fiberize/copyright
		echo ./usr/share/lintian/overrides/fiberize
	} | sort >"$work/want.deb"
	same 'package: these files' '' "$(diff "$work/want.deb" "$work/have")"
	like 'package: what it depends on' '*Depends: *libc6 (>= 2.[0-9]*)*libelf1*' \
		"$(dpkg-deb -I "$deb" | grep Depends)"
	mkdir "$plain/package"
	cp -a "$work/package/usr" "$plain/package"
	run "$plain/package/usr/bin/fiberize" check true
	same 'package: check' 0 "$code"
	run "$plain/package/usr/bin/fiberize" cat /proc/self/maps
	has 'package: its library is loaded' "$work/out" \
		"$plain/package/usr/lib/fiberize/libfiberize.so"
	if command -v lintian >/dev/null; then
		run lintian --fail-on error,warning --tag-display-limit 0 "$deb" "$symbols"
		same 'package: lintian' 0 "$code${out:+: $out}"
	fi
	if command -v gdb >/dev/null; then
		dpkg-deb -x "$symbols" "$work/symbols"
		run gdb -batch -nx -iex "set debug-file-directory $work/symbols/usr/lib/debug" \
			-ex 'info line fz_say' "$work/package/usr/lib/fiberize/libfiberize.so"
		like 'package: its debug symbols' 'Line * of "runtime/base/die.c" *' "$(tail -n 1 "$work/out")"
	fi
	rm -f "$deb" "$symbols"
fi

quiet_make uninstall DESTDIR="$packager" PREFIX=/usr
same 'uninstall leaves no file' '' "$(cd "$packager" && find . ! -type d)"
same 'uninstall leaves no directory' '' "$(find "$packager" -type d -name '*fiberize*')"
# Twice does no harm.
quiet_make uninstall DESTDIR="$packager" PREFIX=/usr

# shellcheck disable=SC2016 # the loader would expand it
for prefix in "/it's" '/a&b' '/a\b' '/a#b' '/a/$LIB' '/a/${ORIGIN}/b' '/a:b' '/a b' '/a%b'; do
	# make makes one dollar of two.
	run env -u MAKEFLAGS -u MAKELEVEL make -s install DESTDIR="$work/odd" PREFIX="${prefix//\$/\$\$}"
	same "cannot be installed in $prefix: exit status" 2 "$code"
	like "cannot be installed in $prefix: why" "*$work/odd${prefix//\\/\\\\}: *" "$err"
	yes "cannot be installed in $prefix: nothing is left" [ ! -e "$work/odd" ]
done
finish
