#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/launch/launcher_profiles.sh - run, --dry-run, and the files that set options by program.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"

prints 'run is the same' "$named_library" "$fiberize" run printenv LD_PRELOAD
prints 'run with options' 3 "$fiberize" run -p 3 printenv FIBERIZE_PROCESSORS
prints 'a dry run prints what would be' \
	"env FIBERIZE_PROCESSORS=3 FIBERIZE_STATS=1 'LD_PRELOAD=$named_library' true 'a b' 'it'\\''s' ''" \
	env FIBERIZE_STATS=1 "$fiberize" --dry-run -p 3 true 'a b' "it's" ''
"$fiberize" --dry-run sh -c 'printf "<%s>" "$LD_PRELOAD" "$1"' - "q'uo te${newline}" >"$work/plan"
prints 'what a dry run prints can be run' "<$named_library><q'uo te${newline}>" sh "$work/plan"
refused 'a dry run refuses as well' 127 '*no such program in PATH' \
	"$fiberize" --dry-run no-such-program

cat >"$conf" <<'CONF'
# a comment
; another

[printenv]
  processors =  5	
stats=1
processors = 6
[ print* ]
stack-size = 64k
[other]
verbose = 1
CONF
prints 'profile' 5 "$fiberize" printenv FIBERIZE_PROCESSORS
run "$fiberize" printenv FIBERIZE_STACK_SIZE FIBERIZE_STATS
same 'profile, by pattern' "64k${newline}1" "$out"
run "$fiberize" printenv FIBERIZE_VERBOSE
same 'profile of another program' '1' "$code$out"
prints 'profile: a flag wins' 2 "$fiberize" -p 2 printenv FIBERIZE_PROCESSORS
prints 'profile: the environment wins' 4 \
	env FIBERIZE_PROCESSORS=4 "$fiberize" printenv FIBERIZE_PROCESSORS
prints 'profile: by the last part of the name' 5 \
	"$fiberize" "$(command -v printenv)" FIBERIZE_PROCESSORS
run "$fiberize" --no-profiles printenv FIBERIZE_PROCESSORS
same 'no profiles' 1 "$code$out"
# checked FILTER COMMAND...: what jq makes of check's report, which succeeds
checked()
{
	filter=$1
	shift
	"$@" 2>&1 | jq -rj "$filter"
}
settings='.profiles[] | .file[-7:] + "[" + .pattern + "]" +
	(.settings | map(" \(.option)=\(.value):\(.used)") | join("")) + ";"'
same 'profiles: check tells them' "/a.conf[printenv] processors=5:true stats=1:true$(:
	) processors=6:false;/a.conf[print*] stack-size=64k:true;" \
	"$(checked "$settings" "$fiberize" check --json printenv)"
same 'profiles: check, by path, and what flags and variables set' \
	"/a.conf[printenv] processors=5:false stats=1:false processors=6:false;$(:
	)/a.conf[print*] stack-size=64k:true;" "$(FIBERIZE_STATS=0 checked "$settings" \
		"$fiberize" -p 2 check --json -- "$(command -v printenv)")"
same 'profiles: check, of another program' '[]' \
	"$(checked '.profiles | tojson' "$fiberize" check --json cat)"
same 'profiles: check without' '[]' \
	"$(checked '.profiles | tojson' "$fiberize" --no-profiles check --json printenv)"
run "$fiberize" check printenv
case $newline$out$newline in
*"${newline}profile     $conf [printenv]: processors = 5, stats = 1, processors = 6 (set before)
profile     $conf [print*]: stack-size = 64k$newline"*) pass 'profiles: check as text' ;;
*) fail 'profiles: check as text' "$out" ;;
esac
printf "[it's \\$\"*]\nlibrary = %s\n[it*]\n" "$library" >"$work/config/fiberize/0.conf"
cp "$(command -v printenv)" "$work/bin/it's \$\"(x)"
same 'profiles: check, strange names' "/0.conf[it's \\\$\"*] library=$library:true;/0.conf[it*];" \
	"$(checked "$settings" "$fiberize" check --json "$work/bin/it's \$\"(x)")"
rm "$work/config/fiberize/0.conf"
printf '[printenv]\r\nprocessors = 8\r\n' >"$work/config/fiberize/0.conf"
prints 'profile: with the lines of another system' 8 "$fiberize" printenv FIBERIZE_PROCESSORS
printf '\357\273\277[printenv]\r\nprocessors = 8\r\n' >"$work/config/fiberize/0.conf"
prints 'profile: with a byte order mark' 8 "$fiberize" printenv FIBERIZE_PROCESSORS
printf '\357\273\277# processors\n[printenv]\nprocessors = 7\n' >"$work/config/fiberize/0.conf"
prints 'profile: with a byte order mark before a comment' 7 \
	"$fiberize" printenv FIBERIZE_PROCESSORS
printf '[printenv]\n\357\273\277processors = 7\n' >"$work/config/fiberize/0.conf"
refused 'profile: a byte order mark elsewhere' 2 '*/0.conf:2: *: no such option' \
	"$fiberize" true
rm "$work/config/fiberize/0.conf"
printf '[printenv]\nprocessors = 7\ndisable = 1' >"$work/config/fiberize/b.conf"
run "$fiberize" printenv FIBERIZE_PROCESSORS FIBERIZE_DISABLE
same 'profiles: the first file wins; no newline at the end' "5${newline}1" "$out"
mkdir -p "$work/home/.config"
mv "$work/config/fiberize" "$work/home/.config"
prints 'profile: by HOME' 5 \
	env -u XDG_CONFIG_HOME HOME="$work/home" "$fiberize" printenv FIBERIZE_PROCESSORS
mv "$work/home/.config/fiberize" "$work/config"
rm "$work/config/fiberize/b.conf"
# bad_profile NAME PATTERN TEXT
bad_profile()
{
	printf '%s\n' "$3" >"$conf"
	refused "$1" 2 "fiberize: $conf:$2" "$fiberize" true
	refused "$1: check" 2 "fiberize: $conf:$2" "$fiberize" check true
}
bad_profile 'profile: an option that is none' '2: procesors: no such option' \
	"[x]${newline}procesors = 1"
bad_profile 'profile: a bad value' '3: processors = 0: must be an integer from 1 to 256' \
	"[x]${newline}${newline}processors = 0"
bad_profile 'profile: no value' '2: processors = : must be *' "[x]${newline}processors ="
bad_profile 'profile: a flag instead of an option' '2: --stats: no such option' \
	"[x]${newline}--stats = 1"
bad_profile 'profile: a comment behind a value' '2: verbose = 1 # on: must be 0 or 1' \
	"[x]${newline}verbose = 1 # on"
bad_profile 'profile: neither' '1: neither [[]PROGRAM] nor OPTION = VALUE' 'processors'
bad_profile 'profile: an empty pattern' '1: [[]] names no program' "[ ]${newline}stats = 1"
bad_profile 'profile: before the first' '1: a setting before the first [[]PROGRAM]' 'processors = 1'
printf 'stats = 1\n' >"$conf"
refused 'profile: before the first, whatever the environment has' 2 '*a setting before the first*' \
	env section=1 "$fiberize" true
rm "$conf"
mkdir "$conf"
refused 'profile: a directory' 2 "fiberize: $conf: not a readable file" "$fiberize" true
rmdir "$conf"
ln -s /no/such "$conf"
refused 'profile: a link to nothing' 2 "fiberize: $conf: not a readable file" "$fiberize" true
rm "$conf"

# ---- whose profile it is

printf '[printenv]\nprocessors = 9\nlibrary = /no/such.so\n' >"$conf"
for mode in 666 664 602; do
	chmod $mode "$conf"
	run "$fiberize" printenv LD_PRELOAD FIBERIZE_PROCESSORS
	same "profile: not if others may write it ($mode)" \
		"fiberize: $conf: ignored: others may write it (mode $mode); chmod go-w it/$named_library" "$err/$out"
done
run "$fiberize" check --json printenv
same 'profile: not if others may write it: check' 0 "$code"
chmod 644 "$conf"
refused 'profile: read if only the user may write it' 115 '*/no/such.so: no such library*' \
	"$fiberize" printenv
if [ "$(id -u)" = 0 ]; then
	chown 65534 "$conf"
	run "$fiberize" printenv LD_PRELOAD FIBERIZE_PROCESSORS
	same 'profile: not if it belongs to somebody else' \
		"fiberize: $conf: ignored: it belongs to user 65534, not to root or to user 0/$named_library" \
		"$err/$out"
	mkdir -p "$work/home/.config/fiberize"
	printf '[printenv]\nlibrary = /no/such.so\n' >"$work/home/.config/fiberize/b.conf"
	chown -R 65534 "$work/home"
	run env -u XDG_CONFIG_HOME HOME="$work/home" "$fiberize" printenv LD_PRELOAD
	same "profile: not of another's HOME" "$named_library" "$out"
	like "profile: not of another's HOME: message" '*/b.conf: ignored: it belongs to user 65534*' "$err"
	# Nor must what is no regular file there end the start.
	rm "$work/home/.config/fiberize/b.conf"
	mkdir "$work/home/.config/fiberize/c.conf"
	mkfifo "$work/home/.config/fiberize/d.conf"
	ln -s nowhere "$work/home/.config/fiberize/e.conf"
	ln -s /etc/passwd "$work/home/.config/fiberize/f.conf"
	chown -hR 65534 "$work/home"
	run env -u XDG_CONFIG_HOME HOME="$work/home" "$fiberize" printenv LD_PRELOAD
	same "profile: no regular file in another's HOME" "$named_library" "$out"
	same "profile: no regular file in another's HOME: messages" 4 \
		"$(grep -c '/[cdef].conf: ignored: it belongs to user 65534' <<<"$err")"
	chown 0 "$conf"
else
	skip 'profile: not if it belongs to somebody else' 'only root can make such a file'
fi

# ---- patterns

# pattern PATTERN YES-OR-NO: does it match printenv?
pattern()
{
	printf '[%s]\nprocessors = 9\n' "$1" >"$conf"
	run "$fiberize" printenv FIBERIZE_PROCESSORS
	same "pattern $1" "$2" "$([ "$out" = 9 ] && echo yes || echo no)"
}
pattern 'print*' yes
pattern '*' yes
pattern '*?env' yes
pattern 'p[^a-q]i*[[:alpha:]]nv' yes
pattern 'p[!r]*' no
pattern 'printenv?' no
pattern '\printe\nv' yes
pattern '*[]x]*' no
pattern '[printenv' no
# In libc's fnmatch() the time doubles with each star.
rests='*e*n*v*e*n*v*e*n*v*e*n*v*e*n*v'
long=$(printf 'env%.0s' {1..60})
ln -s "$(command -v printenv)" "$work/bin/$long"
printf '[%s]\nprocessors = 9\n' "$rests$rests$rests*x" >"$conf"
run "$fiberize" "$work/bin/$long" FIBERIZE_PROCESSORS
same 'a pattern with many stars' '1:' "$code:$out"
rm "$conf"
run "$fiberize" --native-threads "@$rests$rests$rests*x,$rests$rests$rests*x" "$programs/thread_basic"
same 'threads: a pattern with many stars' 0 "$code"

if unshare -m true 2>/dev/null; then
	mkdir "$work/etc"
	printf '[printenv]\nprocessors = 9\nstats = 0\n' >"$work/etc/system.conf"
	printf '[printenv]\nstats = 1\n' >"$conf"
	run unshare -m sh -c 'mount -t tmpfs none /etc && mkdir /etc/fiberize &&
		cp "$1" /etc/fiberize && exec "$2" printenv FIBERIZE_PROCESSORS FIBERIZE_STATS' \
		- "$work/etc/system.conf" "$fiberize"
	same "profile: the system's, behind the user's" "9${newline}1" "$out$err"
	rm "$conf"
else
	skip "profile: the system's" 'no mount namespaces here'
fi

finish
