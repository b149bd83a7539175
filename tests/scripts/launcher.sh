#!/bin/sh
# SPDX-License-Identifier: MIT
#
# tests/scripts/launcher.sh - tests of the launcher (scripts/launch/), "fiberize bench" and the
# list of options.
#
#	tests/scripts/launcher.sh [BUILD]
#
# BUILD (default: build) holds fiberize, libfiberize.so and libexec/ as make
# leaves them.  LEGACY_SERVER names the bundled server, if it is elsewhere than
# in BUILD/tests/programs.  Prints PASS, FAIL or SKIP for each test and the
# sums at the end; exit status 1 if any failed.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016
set -u

root=$(dirname -- "$(dirname -- "$(dirname -- "$(readlink -f -- "$0")")")")
build=$(readlink -f -- "${1-$root/build}")
fiberize=$build/fiberize
library=$build/libfiberize.so
legacy_server=${LEGACY_SERVER-$build/tests/programs/legacy_server}
CC=${CC-cc}

newline='
'
passed=0
failed=0

unset FIBERIZE_LIBRARY FIBERIZE_PROCESSORS FIBERIZE_STACK_SIZE FIBERIZE_VERBOSE \
	FIBERIZE_STATS FIBERIZE_DISABLE LD_PRELOAD

tmp=$(mktemp -d) || exit 1
background=
cleanup()
{
	for pid in $background; do
		kill -9 "$pid" 2>/dev/null
	done
	rm -rf -- "$tmp"
}
trap cleanup EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
mkdir "$tmp/bin" "$tmp/scratch"
# bench puts its files here; that they go again is a test.
export TMPDIR="$tmp/scratch"

pass()
{
	passed=$((passed + 1))
	printf 'PASS %s\n' "$1"
}

fail()
{
	failed=$((failed + 1))
	printf 'FAIL %s: %s\n' "$1" "$2"
}

skip()
{
	printf 'SKIP %s: %s\n' "$1" "$2"
}

# run COMMAND...: sets code, out, err.  A hang is a failure (code 124).
run()
{
	timeout -k 5 120 "$@" >"$tmp/out" 2>"$tmp/err" </dev/null
	code=$?
	out=$(cat "$tmp/out")
	err=$(cat "$tmp/err")
}

# eventually COMMAND...: succeeds within half a minute; how soon is not judged, since
# machines are busy.
eventually()
{
	tries=300
	until "$@"; do
		[ $((tries -= 1)) -gt 0 ] || return 1
		sleep 0.1
	done
}

# equal NAME WANTED GOT
equal()
{
	if [ "$2" = "$3" ]; then
		pass "$1"
	else
		fail "$1" "wanted <$2>, got <$3>"
	fi
}

# refused NAME CODE PATTERN COMMAND...: exits with CODE, prints nothing on
# standard output and one line on standard error, which begins with our name
# and matches PATTERN.
refused()
{
	name=$1 want=$2 pattern=$3
	shift 3
	run "$@"
	if [ "$code" -ne "$want" ]; then
		fail "$name" "exit status $code instead of $want: $err"
		return
	fi
	if [ -n "$out" ]; then
		fail "$name" "standard output: $out"
		return
	fi
	case $err in
	*"$newline"*) fail "$name" "more than one line: $err" ;;
	'fiberize: '*)
		# A pattern is wanted.
		# shellcheck disable=SC2254
		case $err in
		$pattern) pass "$name" ;;
		*) fail "$name" "message: $err" ;;
		esac
		;;
	*) fail "$name" "message: $err" ;;
	esac
}

# prints NAME WANTED COMMAND...: exits with 0 and prints just that.
prints()
{
	name=$1 wanted=$2
	shift 2
	run "$@"
	if [ "$code" -ne 0 ]; then
		fail "$name" "exit status $code: $err"
	elif [ -n "$err" ]; then
		fail "$name" "standard error: $err"
	else
		equal "$name" "$wanted" "$out"
	fi
}

# yes NAME CONDITION...: the command succeeds.
yes()
{
	name=$1
	shift
	if "$@"; then
		pass "$name"
	else
		fail "$name" "not so: $*"
	fi
}

for file in "$fiberize" "$library" "$build/libexec/measure" "$build/libexec/echo_client"; do
	[ -e "$file" ] || {
		echo "launcher.sh: $file is missing; run make first" >&2
		exit 1
	}
done

# ---------------------------------------------------------------- being exec

"$fiberize" sh -c 'echo $$' >"$tmp/out" &
pid=$!
wait $pid
equal 'process id stays' "$pid" "$(cat "$tmp/out")"

for status in 0 1 2 77 126 255; do
	run "$fiberize" sh -c "exit $status"
	equal "exit status $status" "$status" "$code"
done

for signal in 15 11 9 6; do
	# Quietly: what is printed about it is this shell's affair.
	{ "$fiberize" sh -c "ulimit -c 0; kill -$signal \$\$" & } 2>/dev/null
	pid=$!
	{ wait $pid; } 2>/dev/null
	equal "killed by signal $signal" $((128 + signal)) $?
done

"$fiberize" sleep 100 &
pid=$!
background="$background $pid"
became_sleep()
{
	[ "$(cat "/proc/$pid/comm")" = sleep ]
}
eventually became_sleep
equal 'no shell stays in between' sleep "$(cat "/proc/$pid/comm")"
yes 'the library is there' grep -qF "$library" "/proc/$pid/maps"
kill -TERM $pid
{ wait $pid; } 2>/dev/null
equal 'a signal from outside reaches the program' 143 $?

run "$fiberize" sh -c 'echo to-stdout; echo to-stderr >&2'
equal 'standard output' to-stdout "$out"
equal 'standard error' to-stderr "$err"
equal 'standard input' "a b$newline c" "$(printf 'a b\n c\n' | "$fiberize" cat)"
"$fiberize" sh -c '[ ! -e /proc/self/fd/0 ]' <&-
equal 'closed standard input stays closed' 0 $?
prints 'no descriptor is left open' "$(ls /proc/self/fd)" "$fiberize" ls /proc/self/fd
prints 'working directory' "$(pwd -P)" "$fiberize" pwd -P
prints 'argument zero is as given' 'cat /proc/self/cmdline ' \
	sh -c '"$1" cat /proc/self/cmdline | tr "\000" " "' - "$fiberize"

cat >"$tmp/bin/args" <<'ARGS'
#!/bin/sh
printf '%d' $#
for word; do printf '<%s>' "$word"; done
ARGS
chmod +x "$tmp/bin/args"
set -- '' 'a b' "c${newline}d" '*' 'back\slash' "it's" '"' '$HOME' '`id`' -n -- -p --help "end$newline"
prints 'arguments arrive as they are' "$("$tmp/bin/args" "$@")" "$fiberize" "$tmp/bin/args" "$@"
prints 'arguments behind --' "$("$tmp/bin/args" "$@")" "$fiberize" -- "$tmp/bin/args" "$@"

# The order is a shell's affair; each variable must be there.
run env -i "A=x${newline}FIBERIZE_FOO=1" PATH="$PATH" "$fiberize" env
equal 'environment: nothing but LD_PRELOAD and our mark is added' \
	"$(printf 'A=x\nFIBERIZE_FOO=1\nFIBERIZE_LAUNCHED=N\nLD_PRELOAD=%s\nPATH=%s\n' \
		"$library" "$PATH" | sort)" \
	"$(printf '%s\n' "$out" | sed 's/^FIBERIZE_LAUNCHED=[0-9]*$/FIBERIZE_LAUNCHED=N/' | sort)"
# Names that a shell cannot hold, that mean something to it, that are the launcher's.
# environment COMMAND...: the variables of printenv -0, run by that
environment()
{
	LC_ALL=C timeout -k 5 120 "$(command -v env)" -i PATH="$PATH" 'a.b=c d' 'BASH_FUNC_x%%=() { x
}' version=9 table=t name=n code=7 section=s native=n launched=l through=t restore=r file=f \
		newline=n IFS=: PPID=1 OPTIND=5 PS1=p PWD=/nonsense OLDPWD=/q EX_USAGE=9 empty= \
		"bytes=$bytes" "more.bytes=$bytes" "$@" printenv -0 | sort -z |
		sed -z 's/^FIBERIZE_LAUNCHED=[0-9]*$/FIBERIZE_LAUNCHED=N/' | tr '\000' '\n'
}
bytes=$(awk 'BEGIN { for (i = 1; i < 256; i++) printf "\\0%03o", i }')
bytes=$(printf '%b.' "$bytes")
equal 'environment: whatever the names' "$(environment "$(command -v env)" \
	FIBERIZE_LAUNCHED=N LD_PRELOAD="$library")" "$(environment "$fiberize" --no-profiles)"
prints 'environment: twice' "c$newline$library" \
	env a.b=c "$fiberize" "$fiberize" printenv a.b LD_PRELOAD
prints 'LD_PRELOAD of others is kept, behind ours' "$library:libm.so.6:libdl.so.2" \
	env LD_PRELOAD='libm.so.6 libdl.so.2' "$fiberize" printenv LD_PRELOAD
prints 'twice is once' "$library" "$fiberize" "$fiberize" printenv LD_PRELOAD

# ------------------------------------------------------------------- options

for flags in '-p 3' '-p3' '--processors 3' '--processors=3' '--processors=003'; do
	# shellcheck disable=SC2086
	prints "option $flags" "${flags##*[!0-9]}" \
		"$fiberize" $flags printenv FIBERIZE_PROCESSORS
done
prints 'option --stack-size 64k' 64k "$fiberize" --stack-size 64k printenv FIBERIZE_STACK_SIZE
prints 'option --stack-size 1G' 1G "$fiberize" --stack-size 1G printenv FIBERIZE_STACK_SIZE
prints 'option --disable' 1 "$fiberize" --disable printenv FIBERIZE_DISABLE
run "$fiberize" -v printenv FIBERIZE_VERBOSE
equal 'option -v' 1 "$out"
run "$fiberize" --verbose=0 --stats printenv FIBERIZE_VERBOSE FIBERIZE_STATS
equal 'options --verbose=0 --stats' "0${newline}1" "$out"
prints 'a flag wins over the environment' 4 \
	env FIBERIZE_PROCESSORS=9 "$fiberize" -p 4 printenv FIBERIZE_PROCESSORS
prints 'options behind the program are its own' '<-p>' "$fiberize" printf '<%s>' -p

refused 'unknown option' 2 '*--frobnicate: no such option*' "$fiberize" --frobnicate true
refused 'unknown short option' 2 '*-x: no such option*' "$fiberize" -x true
refused 'option without its value' 2 '*--processors needs a value*' "$fiberize" --processors
for value in 0 257 abc '' 1x -1 ' 1' '1 ' 0x4 1.5 99999999999999999999; do
	refused "--processors '$value'" 2 '*: must be an integer from 1 to 256' \
		"$fiberize" --processors "$value" true
	refused "FIBERIZE_PROCESSORS='$value'" 2 \
		"fiberize: FIBERIZE_PROCESSORS=$value: must be an integer from 1 to 256" \
		env FIBERIZE_PROCESSORS="$value" "$fiberize" true
done
for value in 1k 16383 2g 64x k '' 1.5m 64kb 9999999999999999g -64k; do
	refused "FIBERIZE_STACK_SIZE='$value'" 2 \
		"fiberize: FIBERIZE_STACK_SIZE=$value: must be a size from 16k to 1g*" \
		env FIBERIZE_STACK_SIZE="$value" "$fiberize" true
done
for value in 2 yes '' 01; do
	refused "FIBERIZE_VERBOSE='$value'" 2 \
		"fiberize: FIBERIZE_VERBOSE=$value: must be 0 or 1" \
		env FIBERIZE_VERBOSE="$value" "$fiberize" true
done
refused 'a value with a newline makes one line' 2 '*=1?2: must be*' \
	env FIBERIZE_PROCESSORS="1${newline}2" "$fiberize" true
refused 'unknown variable' 2 '*FIBERIZE_PROCESORS: no such option; there are*FIBERIZE_PROCESSORS*' \
	env FIBERIZE_PROCESORS=2 "$fiberize" true
refused 'unknown variable, lower case' 2 '*FIBERIZE_stats: no such option*' \
	env FIBERIZE_stats=1 "$fiberize" true
prints 'FIBERIZE without _ is not ours' x env FIBERIZE=x "$fiberize" printenv FIBERIZE

run "$fiberize"
equal 'no program: exit status' 2 "$code"
equal 'no program: usage' 'usage: fiberize ' "$(printf '%.16s' "$err")"
run "$fiberize" --help
equal '--help' 0 "$code"
for name in $(sed -n 's/^FZ_[A-Z_]*(\([a-z_]*\),.*/\1/p' "$root/runtime/base/options.def" | tr _ -); do
	case $out in
	*"--$name"*) pass "--help knows --$name" ;;
	*) fail "--help knows --$name" "it does not" ;;
	esac
done
run "$fiberize" --version
case $out in
'fiberize '[0-9]*.[0-9]*) pass '--version' ;;
*) fail '--version' "$out" ;;
esac
prints '-V is --version' "$out" "$fiberize" -V
prints '-h is --help' "$("$fiberize" --help)" "$fiberize" -h
for command in check bench; do
	prints "$command -h is $command --help" "$("$fiberize" $command --help)" \
		"$fiberize" $command -h
done

run "$root/scripts/fiberize" --library "$library" -p 2 printenv FIBERIZE_PROCESSORS
equal 'from the source tree' 2 "$out"
run "$fiberize" --no-redirect printenv FIBERIZE_REDIRECT
equal '--no-NAME switches off' 0 "$out"
run "$fiberize" --no-redirect --redirect printenv FIBERIZE_REDIRECT
equal 'the last one holds' 1 "$out"
refused 'no value, no --no-' 2 '*--no-processors*' "$fiberize" --no-processors true
run "$root/scripts/dev/gen-options.sh" --check
equal 'the list in the man page' '0' "$code${err:+: $err}"

# The same on a copy, where it may go wrong.
mkdir -p "$tmp/copy/runtime/base" "$tmp/copy/scripts/dev" "$tmp/copy/scripts/package"
{
	echo above
	sed '/^\.\\" options begin/,/^\.\\" options end/{/^\.\\" options/!d}' "$root/scripts/package/fiberize.1"
	echo below
} >"$tmp/copy/scripts/package/fiberize.1"
cp "$root"/scripts/dev/gen-options.* "$tmp/copy/scripts/dev"
cp "$root"/runtime/base/options.* "$tmp/copy/runtime/base"
gen=$tmp/copy/scripts/dev/gen-options.sh
run "$gen" --check
equal 'gen-options.sh: a stale table is found' 1 "$code"
run "$gen" --update
run "$gen" --check
equal 'gen-options.sh: --update mends it' 0 "$code${err:+: $err}"
equal 'gen-options.sh: and nothing else' 'above below' \
	"$(sed -n '1p;$p' "$tmp/copy/scripts/package/fiberize.1" | tr '\n' ' ' | sed 's/ $//')"
sed -i 's/1, 256/1, 512/' "$tmp/copy/runtime/base/options.def"
run "$gen" --check
equal 'gen-options.sh: a changed option is found' 1 "$code"
for line in 'FZ_OPTION(zz, FIBERIZE_YY, int, 0, 1, 2, "x")' \
	'FZ_OPTION(aa, FIBERIZE_AA, int, 0, 1, 2, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, long, 0, 1, 2, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 0, 1, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 0, 2, 1, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 3, 1, 2, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, choice, 0, 1, 2, "x")' \
	'FZ_WORDS_OPTION(zz, FIBERIZE_ZZ, set, "a,,b", "x")' \
	'FZ_WORDS_OPTION(zz, FIBERIZE_ZZ, bool, "a,b", "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 0, 1, 2, "a|b")'; do
	sed "/^FZ_WORDS_OPTION(without/a$line" "$root/runtime/base/options.def" \
		>"$tmp/copy/runtime/base/options.def"
	run "$gen" --update
	equal "gen-options.sh: refuses $line" 1 "$code"
	case $err in
	*options.def:[1-9]*:*) pass "gen-options.sh: says where: $line" ;;
	*) fail "gen-options.sh: says where: $line" "$err" ;;
	esac
done
run groff -man -ww -z -Tutf8 "$root/scripts/package/fiberize.1"
equal 'the man page has no warnings' '0' "$code$err"

for words in --help --version '--dry-run true' 'bench --help' 'check --help' 'check sh' \
	'check --json sh'; do
	# shellcheck disable=SC2086
	{
		refused "$words, full disk" 1 'fiberize: standard output: cannot be written' \
			sh -c '"$@" >/dev/full' - "$fiberize" $words
		refused "$words, no standard output" 1 'fiberize: standard output: cannot be written' \
			sh -c '"$@" >&-' - "$fiberize" $words
	}
done
prints 'a reader that has had enough' '' \
	sh -c '"$@" | true' - "$fiberize" --help
refused 'check: no program' 2 '*check: no program; *' "$fiberize" check
refused 'check: unknown option' 2 '*check: --frob: no such option; *' "$fiberize" check --frob sh
refused 'check: two programs' 2 '*check: b: there can be one program only; *' "$fiberize" check a b
run "$fiberize" check --help
equal 'check --help' '0usage: fiberize check' "$code$(printf '%.21s' "$out")$err"
for flag in --dry-run --force; do
	refused "check: $flag" 2 "fiberize: $flag: not with check" "$fiberize" $flag check sh
done
refused 'bench: --dry-run' 2 'fiberize: --dry-run: not with bench' \
	"$fiberize" --dry-run bench -- sleep 1
run "$(command -v env)" PATH=/no/such "$fiberize" /bin/true
equal 'the launcher needs nothing in PATH' 0 "$code$out$err"

# ------------------------------------------------- run, dry run, profiles, force

prints 'run is the same' "$library" "$fiberize" run printenv LD_PRELOAD
prints 'run with options' 3 "$fiberize" run -p 3 printenv FIBERIZE_PROCESSORS
prints 'a dry run prints what would be' \
	"env FIBERIZE_PROCESSORS=3 FIBERIZE_STATS=1 LD_PRELOAD=$library true 'a b' 'it'\\''s' ''" \
	env FIBERIZE_STATS=1 "$fiberize" --dry-run -p 3 true 'a b' "it's" ''
"$fiberize" --dry-run sh -c 'printf "<%s>" "$LD_PRELOAD" "$1"' - "q'uo te${newline}" >"$tmp/plan"
prints 'what a dry run prints can be run' "<$library><q'uo te${newline}>" sh "$tmp/plan"
refused 'a dry run refuses as well' 127 '*no such program in PATH' \
	"$fiberize" --dry-run no-such-program

export XDG_CONFIG_HOME="$tmp/config"
mkdir -p "$tmp/config/fiberize"
conf=$tmp/config/fiberize/a.conf
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
equal 'profile, by pattern' "64k${newline}1" "$out"
run "$fiberize" printenv FIBERIZE_VERBOSE
equal 'profile of another program' '1' "$code$out"
prints 'profile: a flag wins' 2 "$fiberize" -p 2 printenv FIBERIZE_PROCESSORS
prints 'profile: the environment wins' 4 \
	env FIBERIZE_PROCESSORS=4 "$fiberize" printenv FIBERIZE_PROCESSORS
prints 'profile: by the last part of the name' 5 \
	"$fiberize" "$(command -v printenv)" FIBERIZE_PROCESSORS
run "$fiberize" --no-profiles printenv FIBERIZE_PROCESSORS
equal 'no profiles' 1 "$code$out"
# checked FILTER COMMAND...: what jq makes of check's report, which succeeds
checked()
{
	filter=$1
	shift
	"$@" 2>&1 | jq -rj "$filter"
}
settings='.profiles[] | .file[-7:] + "[" + .pattern + "]" +
	(.settings | map(" \(.option)=\(.value):\(.used)") | join("")) + ";"'
equal 'profiles: check tells them' "/a.conf[printenv] processors=5:true stats=1:true$(:
	) processors=6:false;/a.conf[print*] stack-size=64k:true;" \
	"$(checked "$settings" "$fiberize" check --json printenv)"
equal 'profiles: check, by path, and what flags and variables set' \
	"/a.conf[printenv] processors=5:false stats=1:false processors=6:false;$(:
	)/a.conf[print*] stack-size=64k:true;" "$(FIBERIZE_STATS=0 checked "$settings" \
		"$fiberize" -p 2 check --json -- "$(command -v printenv)")"
equal 'profiles: check, of another program' '[]' \
	"$(checked '.profiles | tojson' "$fiberize" check --json cat)"
equal 'profiles: check without' '[]' \
	"$(checked '.profiles | tojson' "$fiberize" --no-profiles check --json printenv)"
run "$fiberize" check printenv
case $newline$out$newline in
*"${newline}profile     $conf [printenv]: processors = 5, stats = 1, processors = 6 (set before)
profile     $conf [print*]: stack-size = 64k$newline"*) pass 'profiles: check as text' ;;
*) fail 'profiles: check as text' "$out" ;;
esac
printf "[it's \\$\"*]\nlibrary = %s\n[it*]\n" "$library" >"$tmp/config/fiberize/0.conf"
cp "$(command -v printenv)" "$tmp/bin/it's \$\"(x)"
equal 'profiles: check, strange names' "/0.conf[it's \\\$\"*] library=$library:true;/0.conf[it*];" \
	"$(checked "$settings" "$fiberize" check --json "$tmp/bin/it's \$\"(x)")"
rm "$tmp/config/fiberize/0.conf"
printf '[printenv]\r\nprocessors = 8\r\n' >"$tmp/config/fiberize/0.conf"
prints 'profile: with the lines of another system' 8 "$fiberize" printenv FIBERIZE_PROCESSORS
printf '\357\273\277[printenv]\r\nprocessors = 8\r\n' >"$tmp/config/fiberize/0.conf"
prints 'profile: with a byte order mark' 8 "$fiberize" printenv FIBERIZE_PROCESSORS
printf '\357\273\277# processors\n[printenv]\nprocessors = 7\n' >"$tmp/config/fiberize/0.conf"
prints 'profile: with a byte order mark before a comment' 7 \
	"$fiberize" printenv FIBERIZE_PROCESSORS
printf '[printenv]\n\357\273\277processors = 7\n' >"$tmp/config/fiberize/0.conf"
refused 'profile: a byte order mark elsewhere' 2 '*/0.conf:2: *: no such option' \
	"$fiberize" true
rm "$tmp/config/fiberize/0.conf"
printf '[printenv]\nprocessors = 7\ndisable = 1' >"$tmp/config/fiberize/b.conf"
run "$fiberize" printenv FIBERIZE_PROCESSORS FIBERIZE_DISABLE
equal 'profiles: the first file wins; no newline at the end' "5${newline}1" "$out"
mkdir -p "$tmp/home/.config"
mv "$tmp/config/fiberize" "$tmp/home/.config"
prints 'profile: by HOME' 5 \
	env -u XDG_CONFIG_HOME HOME="$tmp/home" "$fiberize" printenv FIBERIZE_PROCESSORS
mv "$tmp/home/.config/fiberize" "$tmp/config"
rm "$tmp/config/fiberize/b.conf"
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
bad_profile 'profile: a comment behind a value' '2: stats = 1 # on: must be 0 or 1' \
	"[x]${newline}stats = 1 # on"
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
if unshare -m true 2>/dev/null; then
	mkdir "$tmp/etc"
	printf '[printenv]\nprocessors = 9\nstats = 0\n' >"$tmp/etc/system.conf"
	printf '[printenv]\nstats = 1\n' >"$conf"
	run unshare -m sh -c 'mount -t tmpfs none /etc && mkdir /etc/fiberize &&
		cp "$1" /etc/fiberize && exec "$2" printenv FIBERIZE_PROCESSORS FIBERIZE_STATS' \
		- "$tmp/etc/system.conf" "$fiberize"
	equal "profile: the system's, behind the user's" "9${newline}1" "$out$err"
	rm "$conf"
else
	skip "profile: the system's" 'no mount namespaces here'
fi

# ------------------------------------------------------------------- library

refused 'no such library' 115 '*/no/such.so: no such library*' \
	env FIBERIZE_LIBRARY=/no/such.so "$fiberize" true
refused 'no such library, by flag' 115 '*/no/such.so: no such library*' \
	"$fiberize" --library /no/such.so true
refused 'the library is a directory' 115 '*not a readable file*' "$fiberize" --library "$tmp" true
refused 'the library is something else' 115 '*not a shared library*' \
	"$fiberize" --library "$fiberize" true
refused 'FIBERIZE_LIBRARY is empty' 2 '*FIBERIZE_LIBRARY=: must be the name of a file' \
	env FIBERIZE_LIBRARY= "$fiberize" true
mkdir "$tmp/a:b" "$tmp/a b" "$tmp/empty"
cp "$library" "$tmp/a:b/libfiberize.so"
cp "$library" "$tmp/a b/libfiberize.so"
cp "$library" "$tmp/libother.so"
cp "$fiberize" "$tmp/empty/fiberize"
refused 'a colon in its name' 115 '*LD_PRELOAD cannot hold*' \
	"$fiberize" --library "$tmp/a:b/libfiberize.so" true
refused 'a blank in its name' 115 '*LD_PRELOAD cannot hold*' \
	"$fiberize" --library "$tmp/a b/libfiberize.so" true
refused 'not installed at all' 115 '*neither installed nor built*' "$tmp/empty/fiberize" true
prints 'a relative name becomes absolute' "$tmp/libother.so" \
	sh -c 'cd "$1" && exec "$2" --library ./libother.so printenv LD_PRELOAD' - "$tmp" "$fiberize"
ln -s "$fiberize" "$tmp/bin/by-link"
prints 'started through a symbolic link' "$library" "$tmp/bin/by-link" printenv LD_PRELOAD

# ------------------------------------------------------------------ programs

refused 'no such program in PATH' 127 '*no-such-program: no such program in PATH' \
	"$fiberize" no-such-program
refused 'no such program by name' 127 '*/no/such: no such program' "$fiberize" /no/such
refused 'empty name' 127 '*' "$fiberize" ''
ln -s round "$tmp/bin/round"
refused 'a link to itself' 126 '*/round: *symbolic links' "$fiberize" "$tmp/bin/round"
ln -s /no/such "$tmp/bin/nowhere"
refused 'a link to nothing' 127 '*/nowhere: no such program' "$fiberize" "$tmp/bin/nowhere"
refused 'a directory' 126 '*/tmp: is a directory' "$fiberize" /tmp
echo true >"$tmp/bin/plain"
refused 'not executable' 126 '*/plain: not executable' "$fiberize" "$tmp/bin/plain"
mkfifo -m 755 "$tmp/bin/fifo"
refused 'a FIFO' 126 '*/fifo: not a regular file' "$fiberize" "$tmp/bin/fifo"
refused 'a device' 126 '*/dev/null: not a regular file' "$fiberize" /dev/null
refused 'not executable, in PATH' 126 '*/plain: not executable' \
	env PATH="$tmp/bin:$PATH" "$fiberize" plain
mkdir "$tmp/bin/printenv"
prints 'a directory in PATH is no program' "$library" \
	env PATH="$tmp/bin:$PATH" "$fiberize" printenv LD_PRELOAD
printf '\001\002\000\003' >"$tmp/bin/garbage"
chmod +x "$tmp/bin/garbage"
refused 'garbage' 126 '*/garbage: neither a program nor a script' "$fiberize" "$tmp/bin/garbage"
printf '\177ELF\002\001\001' >"$tmp/bin/cut"
chmod +x "$tmp/bin/cut"
refused 'a damaged program' 126 '*/cut: *' "$fiberize" "$tmp/bin/cut"
cp "$tmp/bin/args" "$tmp/bin/-dash"
prints 'a name with a dash' '1<x>' env PATH="$tmp/bin:$PATH" "$fiberize" -- -dash x
ln -s "$(command -v cat)" "$tmp/bin/-cat"
prints 'a name with a dash is argument zero, too' '-cat /proc/self/cmdline ' \
	env PATH="$tmp/bin:$PATH" sh -c '"$1" -- -cat /proc/self/cmdline | tr "\000" " "' - "$fiberize"
printf 'echo "by the shell: $1"\n' >"$tmp/bin/-script"
chmod +x "$tmp/bin/-script"
prints 'a script with a dash, without #!' 'by the shell: x y' \
	env PATH="$tmp/bin:$PATH" "$fiberize" -- -script 'x y'
cp "$tmp/bin/args" "$tmp/bin/bench"
prints 'a program called bench' '1<x>' env PATH="$tmp/bin:$PATH" "$fiberize" -- bench x
# Where shells look then, which the program does not see.
run "$(command -v env)" -i "$fiberize" printenv PATH
equal 'no PATH' 1 "$code$out$err"
run "$(command -v env)" -i "$fiberize" check --json printenv
equal 'no PATH: check' 0 "$code$err"
prints 'an empty element of PATH' '0' \
	sh -c 'cd "$1" && PATH="/no/where::$PATH" exec "$2" args' - "$tmp/bin" "$fiberize"

cat >"$tmp/main.c" <<'MAIN'
#include <stdio.h>
int main(void)
{
	return puts("hello") < 0;
}
MAIN
# patched NAME OFFSET BYTES: a copy of hello with some bytes changed
patched()
{
	cp "$tmp/bin/hello" "$tmp/bin/$1"
	# Escapes are what is wanted.
	# shellcheck disable=SC2059
	printf "$3" | dd of="$tmp/bin/$1" bs=1 seek="$2" conv=notrunc 2>/dev/null
}
$CC -o "$tmp/bin/hello" "$tmp/main.c"
prints 'a dynamic program' hello "$fiberize" "$tmp/bin/hello"
head -c 100 "$tmp/bin/hello" >"$tmp/bin/cut-headers"
chmod +x "$tmp/bin/cut-headers"
refused 'cut behind the ELF header' 126 \
	'*/cut-headers: a damaged program (no readable program headers)' \
	"$fiberize" "$tmp/bin/cut-headers"
$CC -static -o "$tmp/bin/static" "$tmp/main.c"
refused 'static' 116 '*/static: statically linked*' "$fiberize" "$tmp/bin/static"
$CC -static-pie -o "$tmp/bin/static-pie" "$tmp/main.c"
refused 'static, position independent' 116 '*/static-pie: statically linked*' \
	"$fiberize" "$tmp/bin/static-pie"
patched narrow 4 '\001'
refused '32-bit' 117 '*/narrow: a 32-bit program*' "$fiberize" "$tmp/bin/narrow"
if [ "$(uname -m)" = x86_64 ] && echo 'void _start(void) { for (;;); }' |
	$CC -m32 -nostdlib -pie -Wl,-dynamic-linker,/lib/ld-linux.so.2 -x c -o "$tmp/bin/i386" - \
		2>/dev/null; then
	refused '32-bit, for real' 117 '*/i386: a 32-bit program*' "$fiberize" "$tmp/bin/i386"
else
	skip '32-bit, for real' 'the compiler makes none'
fi
patched riscv 18 '\363\000'
refused 'other machine' 118 '*/riscv: made for RISC-V, and *' "$fiberize" "$tmp/bin/riscv"
if command -v aarch64-linux-gnu-gcc >/dev/null && [ "$(uname -m)" = x86_64 ]; then
	aarch64-linux-gnu-gcc -o "$tmp/bin/arm" "$tmp/main.c"
	refused 'other machine, for real' 118 '*/arm: made for AArch64, and *' \
		"$fiberize" "$tmp/bin/arm"
else
	skip 'other machine, for real' 'no cross compiler'
fi
$CC -Wl,-dynamic-linker,/lib/ld-musl-x86_64.so.1 -o "$tmp/bin/musl" "$tmp/main.c"
refused 'musl' 119 '*/musl: uses musl*' "$fiberize" "$tmp/bin/musl"
$CC -Wl,-dynamic-linker,/system/bin/linker64 -o "$tmp/bin/bionic" "$tmp/main.c"
refused 'bionic' 119 '*/bionic: needs /system/bin/linker64*' "$fiberize" "$tmp/bin/bionic"
$CC -Wl,-dynamic-linker,/no/ld-linux.so.2 -o "$tmp/bin/lost" "$tmp/main.c"
refused 'its loader is missing' 127 '*/lost: its loader /no/ld-linux.so.2 does not exist' \
	"$fiberize" "$tmp/bin/lost"
# What the kernel makes of such a program depends on who starts it; tests/scripts/check.sh has more.
# foreign FILE: one that is set-user-ID of another user
foreign()
{
	cp "$tmp/bin/hello" "$1" && chown 65534 "$1" 2>/dev/null && chmod u+s "$1"
}
cp "$(command -v grep)" "$tmp/bin/setuid-own"
chmod ug+s "$tmp/bin/setuid-own"
run "$fiberize" "$tmp/bin/setuid-own" -cF libfiberize.so /proc/self/maps
equal 'set-user-ID, to the user that one is' 0 "$code$err"
if foreign "$tmp/bin/setuid"; then
	refused 'set-user-ID' 120 '*/setuid: set-user-ID,*' "$fiberize" "$tmp/bin/setuid"
	run "$fiberize" --force "$tmp/bin/setuid"
	equal '--force starts a set-user-ID program' 'hello0' "$out$code"
else
	skip 'set-user-ID' 'only root can make such a file'
fi

# What Go's linker leaves, and all that is looked at.
cat >"$tmp/go.c" <<'GO'
#include <stdlib.h>
__attribute__((section(".note.go.buildid"), used)) static const struct {
	unsigned namesz, descsz, type;
	char name[4], id[4];
} note = { 4, 4, 4, "Go", "abc" };
int main(void)
{
	return system("echo $FIBERIZE_LAUNCHED $LD_PRELOAD") != 0;
}
GO
$CC -o "$tmp/bin/go" "$tmp/go.c"
run "$fiberize" "$tmp/bin/go"
case $code:$out:$err in
"0:"[0-9]*" dormant $library:") pass 'Go: dormant, and quiet' ;;
*) fail 'Go: dormant, and quiet' "$code:$out:$err" ;;
esac
run "$fiberize" -v "$tmp/bin/go"
case $err in
"fiberize: $tmp/bin/go: made by Go, which"*'runs natively'*) pass 'Go: says so if asked' ;;
*) fail 'Go: says so if asked' "$err" ;;
esac
if [ -x "$build/tests/programs/go_cgo" ]; then
	prints 'Go, for real' EXIT-SUCCESS "$fiberize" "$build/tests/programs/go_cgo"
else
	skip 'Go, for real' 'make check-all builds one'
fi

run "$fiberize" --force "$tmp/bin/static"
equal '--force starts a static program' 'hello0' "$out$code"
case $err in
*'/static: statically linked'*'; started all the same') pass '--force says so' ;;
*) fail '--force says so' "$err" ;;
esac
printf '\000echo wrong\n' >"$tmp/bin/damaged"
chmod +x "$tmp/bin/damaged"
run "$fiberize" --force "$tmp/bin/damaged"
equal '--force leaves what is damaged to the kernel, not to a shell' \
	"126:fiberize: $tmp/bin/damaged: neither a program nor a script; started all the same
fiberize: $tmp/bin/damaged: Exec format error" "$code:$out$err"
patched unclear 4 '\000'
refused 'a program of an unclear class' 126 '*/unclear: a damaged program*' \
	"$fiberize" "$tmp/bin/unclear"
run "$fiberize" --force "$tmp/bin/unclear"
equal '--force starts what only looks damaged' "$("$tmp/bin/unclear" 2>&1)" "$out"
refused '--force does not start what is not there' 127 '*/no-such: no such program' \
	"$fiberize" --force "$tmp/no-such"

# script NAME FIRST-LINE: an executable script
script()
{
	printf '%s\necho "$0:$*"\n' "$2" >"$tmp/bin/$1"
	chmod +x "$tmp/bin/$1"
}
script by-sh '#!/bin/sh'
prints 'script' "$tmp/bin/by-sh:a b" "$fiberize" "$tmp/bin/by-sh" 'a b'
script by-blank '#!  /bin/sh -e'
prints 'script with blanks and an argument' "$tmp/bin/by-blank:x" "$fiberize" "$tmp/bin/by-blank" x
script by-env '#!/usr/bin/env sh'
prints 'script by env' "$tmp/bin/by-env:x" "$fiberize" "$tmp/bin/by-env" x
script by-env-S '#!/usr/bin/env -S X=1 sh -e'
prints 'script by env -S' "$tmp/bin/by-env-S:x" "$fiberize" "$tmp/bin/by-env-S" x
script by-nothing 'true'
prints 'script without #!' "$tmp/bin/by-nothing:x" "$fiberize" "$tmp/bin/by-nothing" x
script by-none '#! '
prints 'script that names no interpreter' "$tmp/bin/by-none:x" "$fiberize" "$tmp/bin/by-none" x
script by-long "#!/$(printf '%0300d' 1)"
prints 'script whose interpreter the kernel would cut' "$tmp/bin/by-long:x" \
	"$fiberize" "$tmp/bin/by-long" x
printf 'echo "$0"; exit\n\000\001' >"$tmp/bin/with-data"
chmod +x "$tmp/bin/with-data"
prints 'script with data behind it' "$tmp/bin/with-data" "$fiberize" "$tmp/bin/with-data"
printf '#!/bin/sh\r\n' >"$tmp/bin/by-cr"
chmod +x "$tmp/bin/by-cr"
refused 'script with lines of another system' 127 \
	'*by-cr: its interpreter /bin/sh[?]: no such program (the name ends in a carriage return)' \
	"$fiberize" "$tmp/bin/by-cr"
mkdir "$tmp/elsewhere"
cp "$tmp/bin/args" "$tmp/elsewhere/only-there"
for words in "PATH=$tmp/elsewhere:/usr/bin:/bin only-there" "-C $tmp/elsewhere ./only-there" \
	"'$tmp/elsewhere/only-there'"; do
	script by-env-elsewhere "#!/usr/bin/env -S $words"
	prints "script by env -S ${words%% *}" "1<$tmp/bin/by-env-elsewhere>" \
		"$fiberize" "$tmp/bin/by-env-elsewhere"
done
script by-script "#!$tmp/bin/by-sh"
prints 'script by script' "$tmp/bin/by-sh:$tmp/bin/by-script x" "$fiberize" "$tmp/bin/by-script" x
script by-static "#!$tmp/bin/static"
refused 'script by a static program' 116 '*/by-static: its interpreter */static: statically*' \
	"$fiberize" "$tmp/bin/by-static"
script by-env-static '#!/usr/bin/env static'
refused 'script by env and a static program' 116 '*by-env-static: its interpreter */static: stat*' \
	env PATH="$tmp/bin:$PATH" "$fiberize" by-env-static
if [ -u "$tmp/bin/setuid" ]; then
	script by-setuid "#!$tmp/bin/setuid"
	refused 'script by a set-user-ID program' 120 \
		'*/by-setuid: its interpreter */setuid: set-user-ID*' "$fiberize" "$tmp/bin/by-setuid"
fi
script by-lost '#!/no/such/interpreter'
refused 'script by a missing program' 127 '*by-lost: its interpreter /no/such/interpreter: no such*' \
	"$fiberize" "$tmp/bin/by-lost"
script by-env-lost '#!/usr/bin/env no-such-program'
refused 'script by env and a missing program' 127 '*by-env-lost: *no-such-program: no such*' \
	"$fiberize" "$tmp/bin/by-env-lost"
script by-itself "#!$tmp/bin/by-itself"
refused 'script by itself' 126 '*too many interpreters' "$fiberize" "$tmp/bin/by-itself"

# A PATH that has what the launcher needs, but for what is named.
without()
{
	rm -rf "$tmp/tools"
	mkdir "$tmp/tools"
	for tool in sh cat sed tr dirname readlink env printenv sleep awk \
		tail rm mktemp grep uname date getconf taskset wrk cp; do
		[ "$tool" = "$1" ] || ! command -v "$tool" >/dev/null ||
			ln -s "$(command -v "$tool")" "$tmp/tools/$tool"
	done
}
# --------------------------------------------------------------------- bench

cat >"$tmp/server.c" <<'SERVER'
/* An echo server with bad habits: server MODE PORT */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static const char *mode;

/* CPU time of the thread's own, however busy the machine is. */
static void burn(long ms)
{
	struct timespec a, b;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
	while ((b.tv_sec - a.tv_sec) * 1000 + (b.tv_nsec - a.tv_nsec) / 1000000 < ms);
}

static void *serve(void *arg)
{
	int fd = (int)(intptr_t)arg;
	char buf[4096];
	ssize_t n;

	if (!strcmp(mode, "dies"))
		_exit(3);
	if (!strcmp(mode, "burns"))
		burn(200);
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		if (!strcmp(mode, "lies"))
			buf[n - 1] ^= 1;
		if (write(fd, buf, (size_t)n) != n)
			break;
	}
	close(fd);
	return NULL;
}

int main(int argc, char **argv)
{
	struct sockaddr_in a = { .sin_family = AF_INET };
	int one = 1, s = socket(AF_INET, SOCK_STREAM, 0);

	if (argc != 3)
		return 2;
	mode = argv[1];
	if (!strcmp(mode, "stubborn"))
		signal(SIGTERM, SIG_IGN);
	if (!strcmp(mode, "daemon") && fork())
		return 0;
	if (!strcmp(mode, "late"))
		sleep(1);
	setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	a.sin_port = htons((unsigned short)atoi(argv[2]));
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(s, (struct sockaddr *)&a, sizeof(a)) || listen(s, 128)) {
		perror("server: bind");
		return 1;
	}
	if (!strcmp(mode, "forks")) {
		fork();
		fork();
	}
	for (;;) {
		int fd = accept(s, NULL, NULL);
		pthread_t t;

		if (fd < 0)
			continue;
		if (pthread_create(&t, NULL, serve, (void *)(intptr_t)fd))
			return 1;
		pthread_detach(t);
	}
}
SERVER
$CC -O1 -pthread -o "$tmp/server" "$tmp/server.c"
# All of them have that name in their command line, for tidy to find.
cp "$(command -v sleep)" "$tmp/server-sleep"

# tidy NAME: no process and no file of a bench is left.
tidy()
{
	if pgrep -f "$tmp/server" >"$tmp/left"; then
		fail "$1: nothing is left running" "$(tr '\n' ' ' <"$tmp/left")"
		while read -r pid; do
			kill -9 "$pid"
		done <"$tmp/left"
	else
		pass "$1: nothing is left running"
	fi
	equal "$1: no file is left" '' "$(ls -A "$tmp/scratch")"
}

# failed_bench NAME CODE PATTERN COMMAND...: a message matches, the rest is tidy.
failed_bench()
{
	name=$1 want=$2 pattern=$3
	shift 3
	run "$@"
	# shellcheck disable=SC2254
	case $err in
	$pattern) equal "$name" "$want" "$code" ;;
	*) fail "$name" "exit status $code, message: $err" ;;
	esac
	equal "$name: no table" '' "$out"
	tidy "$name"
}

short='--rounds 1 --duration 1 --connections 4'
listening()
{
	awk -v port="$(printf ':%04X' "$1")" \
		'$4 == "0A" && index($2, port) { found = 1 } END { exit !found }' \
		/proc/net/tcp /proc/net/tcp6
}

refused 'bench: no program' 2 '*bench what?*' "$fiberize" bench
refused 'bench: unknown option' 2 '*--frob: no such option*' "$fiberize" bench --frob -- true
refused 'bench: option without its value' 2 '*--rounds needs a value*' "$fiberize" bench --rounds
for flags in '--rounds 0' '--rounds x' '--port 65536' '--wait 0' '--connections -1' \
	'--duration 1.5' '--size 0' '--cpus 1' '--cpus 0:99999' '--cpus x:0' '--path x' \
	'--processors 0'; do
	# shellcheck disable=SC2086
	refused "bench: $flags" 2 '*' "$fiberize" bench --echo $flags -- "$tmp/server" plain 0
done
refused 'bench: unknown variable' 2 '*FIBERIZE_X: no such*' \
	env FIBERIZE_X=1 "$fiberize" bench -- "$tmp/server" plain 0
refused 'bench: missing program' 127 '*no such program*' "$fiberize" bench -- no-such-program
refused 'bench: static program' 116 '*statically*' "$fiberize" bench -- "$tmp/bin/static"
refused 'bench: no library' 115 '*no such library*' \
	"$fiberize" --library /no/such.so bench -- "$tmp/server" plain 0
refused 'bench: JSON file in no directory' 114 '*cannot be written*' \
	"$fiberize" bench --echo --json /no/such/file -- "$tmp/server" plain 0
refused 'bench: JSON file without a name' 2 '*--json: the name of the file is empty' \
	"$fiberize" bench --echo --json '' -- "$tmp/server" plain 0
refused 'bench: no place for temporary files' 114 '*/no/such: no temporary directory*(TMPDIR)' \
	env TMPDIR=/no/such "$fiberize" bench --echo -- "$tmp/server" plain 0
without wrk
refused 'bench: no wrk' 114 '*wrk is not installed*' \
	env PATH="$tmp/tools" "$fiberize" bench -- "$tmp/server" plain 0
refused 'bench: a blank in --path' 2 '*--path /a b: write blanks*' \
	"$fiberize" bench --path '/a b' -- "$tmp/server" plain 0
run "$fiberize" bench --help
equal 'bench --help' '0usage:' "$code${out%% *}"

# shellcheck disable=SC2086
{
failed_bench 'bench: ends at once' 110 '*ended with exit status 3 before it listened*' \
	"$fiberize" bench $short -- sh -c 'exit 3'
failed_bench 'bench: what it said is shown' 110 '*program says: out of cheese*' \
	"$fiberize" bench $short -- sh -c 'echo out of cheese; exit 1'
failed_bench 'bench: killed at once' 110 '*signal 9*before it listened*' \
	"$fiberize" bench $short -- sh -c 'kill -9 $$'
begun=$(date +%s)
failed_bench 'bench: never listens' 111 '*does not listen on any TCP port after 1 seconds*' \
	"$fiberize" bench $short --wait 1 -- "$tmp/server-sleep" 100
yes 'bench: never listens: in time' [ $(($(date +%s) - begun)) -le 9 ]
failed_bench 'bench: listens elsewhere' 111 '*does not listen on port 1 after 1 seconds*' \
	"$fiberize" bench $short --wait 1 --port 1 -- "$tmp/server" plain 0
failed_bench 'bench: load fails' 112 '*load command ended with exit status 7*load says: oops*' \
	"$fiberize" bench $short --load 'echo oops >&2; exit 7' -- "$tmp/server" plain 0
failed_bench 'bench: no such load' 112 '*exit status 127*' \
	"$fiberize" bench $short --load 'no-such-load {port}' -- "$tmp/server" plain 0
failed_bench 'bench: wrong answers' 112 '*came back changed*' \
	"$fiberize" bench --echo $short -- "$tmp/server" lies 0
failed_bench 'bench: dies under load' 110 '*ended with exit status 3 under load*' \
	"$fiberize" bench --echo $short -- "$tmp/server" dies 0
failed_bench 'bench: dies under load that goes on' 110 '*ended with exit status 3 under load*' \
	"$fiberize" bench --load "$build/libexec/echo_client -c 1 -d 1 {port}; exec $tmp/server-sleep 60" $short \
	-- "$tmp/server" dies 0
failed_bench 'bench: full standard output' 114 'fiberize: standard output: cannot be written' \
	sh -c '"$@" >/dev/full' - "$fiberize" bench --load true --rounds 1 -- "$tmp/server" plain 0
run "$fiberize" bench --load true --rounds 1 --json /dev/full -- "$tmp/server" plain 0
equal 'bench: full disk for JSON' '114 fiberize: /dev/full: cannot be written' "$code $err"
tidy 'bench: full disk for JSON'
printf '#!/bin/sh\necho nothing of use\n' >"$tmp/tools/wrk"
chmod +x "$tmp/tools/wrk"
failed_bench 'bench: no figures' 113 '*load says: nothing of use*no figures*' \
	env PATH="$tmp/tools:$PATH" "$fiberize" bench $short -- "$tmp/server" plain 0
failed_bench 'bench: a server that is no HTTP server' 113 '*no figures*' \
	"$fiberize" bench $short --wait 20 -- "$tmp/server" plain 0
}

"$build/libexec/measure" -s "$tmp/s" -l "$tmp/l" "$tmp/server-sleep 30" -- "$tmp/server" plain 0 \
	>/dev/null &
measure=$!
background="$background $measure"
port=
find_port()
{
	pid=$(pgrep -P $measure -f "$tmp/server plain" -o) || return
	port=$(ss -Hltnp 2>/dev/null | awk -v pid="pid=$pid," \
		'index($0, pid) { sub(/.*:/, "", $4); print $4; exit }')
	[ -n "$port" ]
}
eventually find_port
failed_port()
{
	run "$fiberize" bench --echo --port "$port" -- "$tmp/server" plain "$port"
	case $err in
	*"port $port is in use by another process"*) equal 'bench: port in use' 114 "$code" ;;
	*) fail 'bench: port in use' "exit status $code, message: $err" ;;
	esac
}
failed_port
kill -TERM $measure
wait $measure
equal 'measure: ended by SIGTERM in order' 143 $?
tidy 'measure: ended by SIGTERM'
if listening "$port"; then
	fail 'the port is free again' "something listens on $port"
else
	pass 'the port is free again'
fi
# From here on one that the kernel gives to nobody who does not ask for it.
port=$((10000 + $$ % 20000))
while listening "$port"; do
	port=$((port + 1))
done

none_left()
{
	! pgrep -f "$tmp/server" >/dev/null
}

# interrupted SIGNAL: in the middle of a load.  The launcher gets it alone, as
# from another program, not from a terminal that signals all of a group.
interrupted()
{
	setsid env --default-signal=INT sh -c 'echo $$ >"$0"; exec "$@"' "$tmp/pid" \
		"$fiberize" bench --load "$tmp/server-sleep 30" -- "$tmp/server" plain 0 \
		>"$tmp/out" 2>"$tmp/err" &
	waiter=$!
	yes "bench, SIG$1: is under way" eventually pgrep -f "^$tmp/server-sleep 30" >/dev/null
	kill -s "$1" "$(cat "$tmp/pid")"
	{ wait $waiter; } 2>/dev/null
	equal "bench, SIG$1: exit status" "$2" $?
	# A killed launcher takes its children with it, but cannot wait for them.
	if [ "$1" = KILL ]; then
		eventually none_left
		rm -rf "$tmp/scratch"/*
	fi
	tidy "bench, SIG$1"
}
interrupted INT 130
interrupted TERM 143
interrupted HUP 129
interrupted KILL 137

# samples FILE FILTER: what jq prints for it
samples()
{
	jq -r "$2" "$1" 2>&1
}

if ! command -v jq >/dev/null; then
	echo 'launcher.sh: jq is missing; run scripts/dev/deps.sh check' >&2
	exit 1
fi

# good_bench NAME JSON COMMAND...: ends well, and writes valid JSON.
good_bench()
{
	name=$1 json=$2
	shift 2
	run "$@"
	if [ "$code" -ne 0 ]; then
		fail "$name" "exit status $code: $err"
	else
		pass "$name"
	fi
	yes "$name: JSON" jq -e . "$json" >/dev/null
	tidy "$name"
}

json=$tmp/samples.json
good_bench 'bench: three rounds' "$json" "$fiberize" bench --echo --rounds 3 --duration 1 \
	--connections 8 --size 100 --json "$json" -- "$tmp/server" plain 0
equal 'bench: sides alternate' \
	'1 native,1 fiberize,2 native,2 fiberize,3 native,3 fiberize' \
	"$(samples "$json" '[.rounds[] | "\(.round) \(.side)"] | join(",")')"
equal 'bench: every round has every figure' 'true' "$(samples "$json" '[.rounds[] |
	.requests, .requests_per_second, .latency_p50_us, .latency_p99_us, .cpu_us,
	.cpu_us_per_request, .switches, .peak_kb | . > 0] | all')"
equal 'bench: median, min and max' 'true' "$(samples "$json" '. as $all |
	([.rounds[] | select(.side == "native") | .cpu_us_per_request] | sort) as $v |
	.summary.native.cpu_us_per_request |
	.min == $v[0] and .median == $v[1] and .max == $v[2]')"
equal 'bench: ratio' 'true' "$(samples "$json" '
	([.rounds[] | select(.round == 2) | .requests_per_second] | .[1] / .[0]) as $second |
	.summary.ratio.requests_per_second | .min <= $second * 1.001 and .max >= $second * 0.999')"
case $out in
*requests/s*'latency p50'*'latency p99'*'CPU us/request'*'context switches'*'peak memory'*)
	pass 'bench: the table has it all' ;;
*) fail 'bench: the table has it all' "$out" ;;
esac
equal 'bench: no progress unless on a terminal' '' "$err"

run script -qec "'$fiberize' bench --load true --rounds 2 -- '$tmp/server' plain 0" /dev/null
case $out in
*'round 1 of 2: native'*'round 2 of 2: fiberize'*) pass 'bench: progress on a terminal' ;;
*) fail 'bench: progress on a terminal' "$out" ;;
esac
good_bench 'bench: with odd arguments' "$json" "$fiberize" bench --rounds 1 --json "$json" \
	--load 'echo "requests 10"; echo {host} {port} >&2' -- \
	sh -c 'exec "$0" "$1" 0' "$tmp/server" plain 'a "b" \c' '' "x${newline}y" "tab	é"
equal 'bench: arguments in JSON' "a \"b\" \\c||x${newline}y|tab?é" \
	"$(samples "$json" '.program[5:] | join("|")' | tr '\t' '?')"
equal 'bench: figures of a load of one'"'"'s own' '10' "$(samples "$json" '.rounds[0].requests')"
good_bench 'bench: a load without figures' "$json" "$fiberize" bench --rounds 1 --json "$json" \
	--load "$build/libexec/echo_client -d 0.5 -h {host} {port} >/dev/null" -- "$tmp/server" plain 0
equal 'bench: a load without figures: requests' 'null' \
	"$(samples "$json" '.rounds[0].requests, .rounds[0].cpu_us_per_request' | uniq)"
case $out in
*'CPU ms'*'context switches'*) pass 'bench: a load without figures: the rest' ;;
*) fail 'bench: a load without figures: the rest' "$out" ;;
esac
good_bench 'bench: figures of wrk' "$json" "$fiberize" bench --rounds 1 --json "$json" --load "
	echo '  Thread Stats   Avg      Stdev     Max   +/- Stdev'
	echo '    Latency     1.99ms  300.00us   5.00ms   90.00%'
	echo '     50%  950.00us'
	echo '     75%    1.95ms'
	echo '     99%    1.25s'
	echo '  12345 requests in 2.50s, 1.41MB read'
	echo '  Socket errors: connect 1, read 2, write 3, timeout 4'
	echo '  Non-2xx or 3xx responses: 5'
	echo 'Requests/sec:   4938.00'" -- "$tmp/server" plain 0
equal 'bench: figures of wrk: all of them' '950 1250000 12345 2.5 4938 15' "$(samples "$json" \
	'.rounds[0] | "\(.latency_p50_us) \(.latency_p99_us) \(.requests) \(.seconds) \(.requests_per_second) \(.errors)"')"

# Two connections, each burning 200 ms in a thread that is gone at the end.
good_bench 'bench: CPU time of threads that have ended' "$json" "$fiberize" bench \
	--rounds 1 --json "$json" --load "$build/libexec/echo_client -c 2 -d 1 -t 90 -h {host} {port}" \
	-- "$tmp/server" burns 0
equal 'bench: CPU time of threads that have ended: counted' 'true' \
	"$(samples "$json" '[.rounds[].cpu_us | . > 380000 and . < 10000000] | all')"
# Options of the launcher's own are for the fiberized side: a profile, and what it refuses.
mkdir -p "$tmp/config/fiberize"
printf '[server]\nlibrary = /no/such.so\n' >"$conf"
failed_bench 'bench: a bad profile' 110 '*fiberize, round 1*/no/such.so: no such library*' \
	"$fiberize" bench --load true --rounds 1 -- "$tmp/server" plain 0
good_bench 'bench: no profiles' "$json" "$fiberize" bench --no-profiles --load true --rounds 1 \
	--json "$json" -- "$tmp/server" plain 0
rm "$conf"
cp "$tmp/server" "$tmp/server-setgid"
if chgrp 65534 "$tmp/server-setgid" 2>/dev/null && chmod g+s "$tmp/server-setgid"; then
	refused 'bench: a set-group-ID program' 120 '*set-group-ID*' \
		"$fiberize" bench --load true --rounds 1 -- "$tmp/server-setgid" plain 0
	good_bench 'bench: --force' "$json" "$fiberize" --force bench --load true --rounds 1 \
		--json "$json" -- "$tmp/server-setgid" plain 0
else
	skip 'bench: a set-group-ID program' 'only root can make one'
fi
for mode in late forks daemon; do
	good_bench "bench: a server that $mode" "$json" "$fiberize" bench --echo --rounds 1 \
		--duration 1 --connections 8 --json "$json" -- "$tmp/server" $mode 0
done
good_bench 'bench: a stubborn server' "$json" "$fiberize" bench --load true --rounds 1 \
	--json "$json" -- "$tmp/server" stubborn 0
case $err in
*'native, round 1: still there 5 seconds after SIGTERM: killed'*) pass 'bench: says so' ;;
*) fail 'bench: says so' "$err" ;;
esac
good_bench 'bench: a given port, twice in a row' "$json" "$fiberize" bench --echo --rounds 2 \
	--duration 1 --connections 8 --port "$port" --json "$json" -- "$tmp/server" plain "$port"
equal 'bench: the given port was taken' "$port" "$(samples "$json" '.rounds[3].port')"
if [ "$(nproc)" -ge 2 ] && taskset -c 0,1 true 2>/dev/null; then
	good_bench 'bench: pinned' "$json" "$fiberize" bench --echo --rounds 1 --duration 1 \
		--cpus 0:1 --json "$json" -- "$tmp/server" plain 0
else
	skip 'bench: pinned' 'there is one CPU only'
fi
LD_PRELOAD=$library
export LD_PRELOAD
good_bench 'bench: natively means without the library' "$json" "$fiberize" bench --rounds 1 \
	--load "for p in \$(pgrep -xf '$tmp/server plain $port'); do grep -q $library /proc/\$p/maps && exit; done
		echo latency_p50_us 7" --port "$port" --json "$json" -- "$tmp/server" plain "$port"
unset LD_PRELOAD
equal 'bench: natively means without the library: looked at' '[7,null]' \
	"$(samples "$json" '[.rounds[].latency_p50_us] | tostring')"

good_bench 'bench: the environment' "$json" env a.b=c side=s "$fiberize" bench --rounds 1 \
	--load "for p in \$(pgrep -xf '$tmp/server plain $port'); do
			tr '\\000' '\\n' <\"/proc/\$p/environ\" | grep -cx -e a.b=c -e side=s |
				sed 's/^/latency_p50_us /'
		done" --port "$port" --json "$json" -- "$tmp/server" plain "$port"
equal 'bench: the environment: looked at' '[2,2]' \
	"$(samples "$json" '[.rounds[].latency_p50_us] | tostring')"

# ----------------------------------------------------- with the bundled server

if [ -x "$legacy_server" ]; then
	good_bench 'bench: bundled server, HTTP' "$json" "$fiberize" bench --rounds 2 --duration 1 \
		--json "$json" -- "$legacy_server" -p 0
	equal 'bench: bundled server, HTTP: figures' 'true' "$(samples "$json" '[.rounds[] |
		.requests, .latency_p50_us, .latency_p99_us, .cpu_us_per_request | . > 0] | all')"
	equal 'bench: bundled server, HTTP: no errors' '0' \
		"$(samples "$json" '[.rounds[].errors // 0] | add')"
	good_bench 'bench: bundled server, echo' "$json" "$fiberize" bench --echo --rounds 2 \
		--duration 1 --connections 128 --json "$json" -- "$legacy_server" -e -p 0
	equal 'bench: bundled server, echo: figures' 'true' "$(samples "$json" '[.rounds[] |
		.requests, .latency_p50_us, .latency_p99_us, .cpu_us_per_request | . > 0] | all')"
	equal 'bench: bundled server, echo: no errors' '0' \
		"$(samples "$json" '[.rounds[].errors] | add')"
else
	fail 'bench: bundled server' "$legacy_server is missing; run make first"
fi

printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ]
