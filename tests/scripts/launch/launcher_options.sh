#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/launch/launcher_options.sh - the launcher's options and variables, and the list of them.
#
# Much is expanded by an inner shell or by jq, hence:
# shellcheck disable=SC2016

# shellcheck source=tests/lib/launcher.inc
. "$(dirname "$0")/../../lib/launcher.inc"

for flags in '-p 3' '-p3' '--processors 3' '--processors=3' '--processors=003'; do
	# shellcheck disable=SC2086
	prints "option $flags" "${flags##*[!0-9]}" \
		"$fiberize" $flags printenv FIBERIZE_PROCESSORS
done
prints 'option --stack-size 64k' 64k "$fiberize" --stack-size 64k printenv FIBERIZE_STACK_SIZE
prints 'option --stack-size 1G' 1G "$fiberize" --stack-size 1G printenv FIBERIZE_STACK_SIZE
prints 'option --disable' 1 "$fiberize" --disable printenv FIBERIZE_DISABLE
run "$fiberize" -v printenv FIBERIZE_VERBOSE
same 'option -v' 1 "$out"
run "$fiberize" --verbose=0 --stats printenv FIBERIZE_VERBOSE FIBERIZE_STATS
same 'options --verbose=0 --stats' "0${newline}1" "$out"
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
refused 'unknown variable' 2 '*FIBERIZE_PROCESORS: no such option; the options are*FIBERIZE_PROCESSORS*' \
	env FIBERIZE_PROCESORS=2 "$fiberize" true
refused 'unknown variable, lower case' 2 '*FIBERIZE_stats: no such option*' \
	env FIBERIZE_stats=1 "$fiberize" true
prints 'FIBERIZE without _ is not ours' x env FIBERIZE=x "$fiberize" printenv FIBERIZE

refused 'no program' 2 'fiberize: no program; * or fiberize --help' "$fiberize"
for command in '' run check bench; do
	# shellcheck disable=SC2086 # no word, or one
	prints "$command -V" "$("$fiberize" --version)" "$fiberize" $command -V
	# shellcheck disable=SC2086
	run "$fiberize" $command -h
	same "$command -h" '0usage:' "$code${out%% *}$err"
done
run "$fiberize" --help
same '--help' 0 "$code"
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
same 'from the source tree' 2 "$out"
run "$fiberize" --no-redirect printenv FIBERIZE_REDIRECT
same '--no-NAME switches off' 0 "$out"
run "$fiberize" --no-redirect --redirect printenv FIBERIZE_REDIRECT
same 'the last one holds' 1 "$out"
refused 'no value, no --no-' 2 '*--no-processors*' "$fiberize" --no-processors true
run "$root/scripts/dev/gen-options.sh" --check
same 'the list in the man page' '0' "$code${err:+: $err}"

# The same on a copy, where it may go wrong.
mkdir -p "$work/copy/runtime/base" "$work/copy/scripts/dev" "$work/copy/scripts/package"
{
	echo above
	sed '/^\.\\" options begin/,/^\.\\" options end/{/^\.\\" options/!d}' "$root/scripts/package/fiberize.1"
	echo below
} >"$work/copy/scripts/package/fiberize.1"
cp "$root"/scripts/dev/{gen-options.*,manual.awk} "$work/copy/scripts/dev"
cp "$root"/runtime/base/options.* "$work/copy/runtime/base"
ln -s "$root/preload" "$work/copy/preload"
ln -s "$root/scripts/launch" "$work/copy/scripts/launch"
gen=$work/copy/scripts/dev/gen-options.sh
run "$gen" --check
same 'gen-options.sh: a stale table is found' 1 "$code"
run "$gen" --update
run "$gen" --check
same 'gen-options.sh: --update mends it' 0 "$code${err:+: $err}"
same 'gen-options.sh: and nothing else' 'above below' \
	"$(sed -n '1p;$p' "$work/copy/scripts/package/fiberize.1" | tr '\n' ' ' | sed 's/ $//')"
sed -i 's/1, 256/1, 512/' "$work/copy/runtime/base/options.def"
run "$gen" --check
same 'gen-options.sh: a changed option is found' 1 "$code"
sed '/^FZ_WORDS_OPTION(without/aFZ_OPTION(zz, FIBERIZE_ZZ, int, 0, 1, 2, "x")' "$root/runtime/base/options.def" \
	>"$work/copy/runtime/base/options.def"
run "$gen" --update
run "$gen" --check
same 'gen-options.sh: an option that nothing reads is found' \
	'gen-options.sh: runtime/base/options.def: zz: nothing reads it; see step 2 there' "$err"
# Only a flag of the launcher alone is a member of struct settings.
rm "$work/copy/scripts/launch"
cp -r "$root/scripts/launch" "$work/copy/scripts"
echo 's->zz' >"$work/copy/scripts/launch/zz.c"
run "$gen" --check
same 'gen-options.sh: what reads a flag of that name does not read the option' 1 "$code"
sed '/^FZ_LAUNCHER_FLAG(no_profiles/aFZ_LAUNCHER_FLAG(zz, "x")' "$root/runtime/base/options.def" \
	>"$work/copy/runtime/base/options.def"
run "$gen" --update
run "$gen" --check
same 'gen-options.sh: what reads the flag of the launcher' 0 "$code${err:+: $err}"
echo 'fz_config.zz' >"$work/copy/scripts/launch/zz.c"
run "$gen" --check
same 'gen-options.sh: a flag of the launcher that nothing reads is found' \
	'gen-options.sh: runtime/base/options.def: zz: nothing reads it; see step 2 there' "$err"
for line in 'FZ_OPTION(zz, FIBERIZE_YY, int, 0, 1, 2, "x")' \
	'FZ_OPTION(aa, FIBERIZE_AA, int, 0, 1, 2, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, long, 0, 1, 2, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 0, 1, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 0, 2, 1, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 3, 1, 2, "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, choice, 0, 1, 2, "x")' \
	'FZ_WORDS_OPTION(zz, FIBERIZE_ZZ, set, "a,,b", "x")' \
	'FZ_WORDS_OPTION(zz, FIBERIZE_ZZ, bool, "a,b", "x")' \
	'FZ_OPTION(zz, FIBERIZE_ZZ, int, 0, 1, 2, "a|b")' \
	'FZ_LAUNCHER_FLAG(Zz, "x")' 'FZ_LAUNCHER_FLAG(aa, "x")' 'FZ_LAUNCHER_FLAG(zz, "")' \
	'FZ_LAUNCHER_FLAG(zz, "a|b")'; do
	case $line in
	FZ_LAUNCHER_FLAG*) after=FZ_LAUNCHER_FLAG\(no_profiles ;;
	*) after=FZ_WORDS_OPTION\(without ;;
	esac
	sed "/^$after/a$line" "$root/runtime/base/options.def" \
		>"$work/copy/runtime/base/options.def"
	run "$gen" --update
	same "gen-options.sh: refuses $line" 1 "$code"
	case $err in
	*options.def:[1-9]*:*) pass "gen-options.sh: says where: $line" ;;
	*) fail "gen-options.sh: says where: $line" "$err" ;;
	esac
done
run groff -man -ww -z -Tutf8 "$root/scripts/package/fiberize.1"
same 'the man page has no warnings' '0' "$code$err"

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
same 'check --help' '0usage: fiberize check' "$code$(printf '%.21s' "$out")$err"
for flag in --dry-run --force; do
	refused "check: $flag" 2 "fiberize: $flag: cannot be used with check" "$fiberize" $flag check sh
done
refused 'bench: --dry-run' 2 'fiberize: --dry-run: cannot be used with bench' \
	"$fiberize" --dry-run bench -- sleep 1
refused 'bench: --dry-run among its options' 2 'fiberize: --dry-run: cannot be used with bench' \
	"$fiberize" bench --dry-run -- sleep 1
refused 'a flag that takes no value' 2 'fiberize: --force=1: no such option; *' "$fiberize" --force=1 true
refused 'bench: a long flag with one dash' 2 'fiberize: -load: no such option; *' "$fiberize" bench -load x -- true
refused 'a short flag that takes no value' 2 'fiberize: -v1: no such option; *' "$fiberize" -v1 true
run "$(command -v env)" PATH=/no/such "$fiberize" /bin/true
same 'the launcher needs nothing in PATH' 0 "$code$out$err"
prints 'an empty PATH: a path' a "$(command -v env)" PATH= "$fiberize" /bin/echo a
prints 'an empty PATH: the launcher of the source' a "$(command -v env)" PATH= "$root/scripts/fiberize" /bin/echo a
cd /bin || exit 1
prints 'an empty PATH is the directory' a "$(command -v env)" PATH= "$fiberize" echo a

finish
