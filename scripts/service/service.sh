#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/service/service.sh - "fiberize enable", "disable" and "status" of a service of systemd.
#
#	service.sh COMMAND SELF LIBRARY LIB COUNT [VARIABLE=VALUE...] [--root DIR] SERVICE
#
# SELF is the path of the launcher.  The drop-in preloads LIBRARY, empty for "disable", and sets the variables; COUNT is
# their number.
# LIB is what $LIB stands for, for this machine's loader, if LD_PRELOAD can name LIBRARY by it; otherwise empty.
set -u
export LC_ALL=C

EX_OTHER=1
EX_USAGE=2
EX_NOT_ENABLED=99
EX_NO_SERVICE=100
EX_CANNOT_CHANGE=101
EX_NO_EFFECT=102
EX_NO_SYSTEMD=103
EX_FORBIDDEN=106
EX_OTHER_LIBC=119

name=50-fiberize.conf
mark='# Written by "fiberize enable"; "fiberize disable" removes it.'
may_be='is the file system read-only, or are you not root?'
tab=$(printf '\t')
newline='
'

die()
{
	code=$1
	shift
	printf 'fiberize: %s\n' "$(printf '%s' "$*" | tr '\000-\037\177' '?')" >&2
	exit "$code"
}

usage()
{
	case $command in
	enable) text='Writes a drop-in, so that SERVICE runs under fiberize from its next start on.' ;;
	disable) text='Removes what "fiberize enable" has written.' ;;
	*) text='Says whether SERVICE is set up to run under fiberize, and whether it does.' ;;
	esac
	printf 'usage: fiberize [options] %s [--root DIR] SERVICE\n\n%s\n\n' "$command" "$text"
	printf '  --root DIR\n        the system below DIR, which does not run\n'
	exit 0
}

wrong_usage()
{
	die $EX_USAGE "$command: $*; fiberize [options] $command [--root DIR] SERVICE"
}

# shellcheck source=scripts/service/unit.sh
. "${0%/*}/unit.sh"
# shellcheck source=scripts/service/effect.sh
. "${0%/*}/effect.sh"

is_yes()
{
	case $1 in
	1 | [Yy] | [Yy][Ee][Ss] | [Tt] | [Tt][Rr][Uu][Ee] | [Oo][Nn]) return 0 ;;
	esac
	return 1
}

is_no()
{
	case $1 in
	0 | [Nn] | [Nn][Oo] | [Ff] | [Ff][Aa][Ll][Ss][Ee] | [Oo][Ff][Ff]) return 0 ;;
	esac
	return 1
}

# ---- the drop-in

# quoted TEXT: prints TEXT in double quotes, as systemd reads it.
quoted()
{
	printf '"%s"' "$(printf '%s' "$1" | sed 's/[\\"]/\\&/g')"
}

# Prints the value of LD_PRELOAD: the library, then the other libraries of the unit, as the launcher does.
# A % in the library's path is doubled; a % in the unit's text is left, because systemd expands it.
preload_value()
{
	printf '%s' "$named" | sed 's/%/%%/g'
	facts preload | tr ' ' ':' | tr ':' '\n' |
		while IFS= read -r other; do
			case $other in
			'' | *libfiberize.so | *libfiberize-preload.so) ;;
			*) printf ':%s' "$other" ;;
			esac
		done
}

print_dropin()
{
	printf '%s\n[Service]\nEnvironment=%s\n' "$mark" "$(quoted "LD_PRELOAD=$(preload_value)")"
	for variable; do
		printf 'Environment=%s\n' "$(quoted "$(printf '%s' "$variable" | sed 's/%/%%/g')")"
	done
	if [ -n "$added" ]; then
		printf '# Added to the calls that the unit allows.\nSystemCallFilter=%s\n' "$added"
	fi
	if [ -n "$without_io_uring" ]; then
		printf '# The unit forbids io_uring.\nEnvironment=FIBERIZE_BACKEND=epoll\n'
	fi
}

# means KEY VALUE TEXT: prints what a setting of the unit means under fiberize
means()
{
	printf '  %s=%s: %s\n' "$1" "$2" "$3"
}

explain()
{
	[ -z "$(facts preload)" ] || printf '  LD_PRELOAD: kept, behind the library: %s\n' "$(facts preload)"
	[ -z "${verdict-}" ] || printf '  its program %s\n' "$verdict"
	[ ! -e "$root/etc/fiberize/disable" ] ||
		printf '  %s is there: all programs run natively until it is removed\n' "$root/etc/fiberize/disable"
	# That of the drop-in counts more, and whoever has set it there knows.
	[ "$(facts disable)" != 1 ] || grep -q '^Environment="FIBERIZE_DISABLE=' "$dropin" ||
		means Environment FIBERIZE_DISABLE=1 'it runs natively until that is removed from the unit'
	! is_yes "$(facts MemoryDenyWriteExecute)" || means MemoryDenyWriteExecute yes \
		"calls inside libc (stdio, names of hosts) hold a kernel thread each while they wait; the rest is as without"
	[ -z "$added" ] || means SystemCallFilter ... "the drop-in allows what the library calls, too: $added"
	[ -z "$without_io_uring" ] || means SystemCallFilter '~...' 'it forbids io_uring, so fibers wait by epoll'
	for key in PrivateTmp RestrictNamespaces LimitMEMLOCK; do
		value=$(facts $key)
		[ -z "$value" ] || is_no "$value" || means $key "$value" 'no matter: the library does not need what this takes away'
	done
	value=$(facts User)
	[ -z "$value" ] || means User "$value" "fiberize ps, stat and trace must be run as $value or root"
	key=User
	! is_yes "$(facts DynamicUser)" || key=DynamicUser value=yes
	case $value in
	'' | root | 0) ;;
	*)
		closed=$(closed_to_others "$library")
		[ -z "$closed" ] || means $key "$value" \
			"$closed is not open to all: if this user may not read the library there, the service runs natively"
		;;
	esac
}

# Prints the mistakes that systemd-analyze finds in the unit, each in a line.
verify()
{
	if [ -n "$root" ]; then
		systemd-analyze verify --man=no --root="$root" "$service" 2>&1
	else
		systemd-analyze verify --man=no "$service" 2>&1
	fi | sort -u
}

# Makes systemd read the units again, if it runs here.
reload()
{
	if [ -z "$root" ] && [ -d /run/systemd/system ]; then
		systemctl daemon-reload
	fi
}

# Ends with a message if the drop-in was not written by fiberize: then it must not be changed or removed.
must_be_ours()
{
	{ [ ! -e "$dropin" ] && [ ! -L "$dropin" ]; } || is_ours "$dropin" ||
		die $EX_CANNOT_CHANGE "$dropin: not written by fiberize enable; remove or rename it"
}

# A link in somebody else's tree may lead to the folders of this system.
must_stay_below()
{
	[ -n "$root" ] || return 0
	case $(readlink -m "$folder_of_dropin") in
	"$(readlink -f "$root")"/*) ;;
	*) die $EX_CANNOT_CHANGE "$folder_of_dropin: a link leads out of $root; mend it there" ;;
	esac
}

# Prints the command that restarts the service, of a template all instances that run, as a shell reads it.
restart()
{
	case $service in
	*@.service) printf "systemctl restart '%s*'" "${service%.service}" ;;
	*\\*) printf "systemctl restart '%s'" "${service%.service}" ;;
	*) printf 'systemctl restart %s' "${service%.service}" ;;
	esac
}

# Keeps the old drop-in in $temporary.before.  Sets kept: old, or none if there was no drop-in.
keep_dropin()
{
	if [ ! -e "$dropin" ]; then
		kept=none
	elif ln "$dropin" "$temporary.before" 2>/dev/null || cp -p "$dropin" "$temporary.before" 2>/dev/null; then
		kept=old
	else
		return 1
	fi
}

# Restores the old drop-in, or removes the new one.  If kept is empty, the drop-in has not been changed yet.
roll_back()
{
	case $kept in
	# If both names are still links to one file, mv fails; but then the drop-in has not been replaced.
	old) mv -f "$temporary.before" "$dropin" 2>/dev/null ;;
	none) rm -f "$dropin" ;;
	esac
	rm -f "$temporary" "$temporary.before"
	rmdir "$folder_of_dropin" 2>/dev/null
}

enable_service()
{
	must_have_effect
	must_be_ours
	before=$(verify)
	text=$(print_dropin "$@")
	mkdir -p "$folder_of_dropin" 2>/dev/null ||
		die $EX_CANNOT_CHANGE "$folder_of_dropin: cannot be made; $may_be"
	temporary=$(mktemp "$folder_of_dropin/.fiberize.XXXXXX" 2>/dev/null) ||
		die $EX_CANNOT_CHANGE "$folder_of_dropin: cannot be written; $may_be"
	kept=
	trap 'roll_back; exit 130' HUP INT TERM
	if ! keep_dropin || ! printf '%s\n' "$text" 2>/dev/null >"$temporary" || ! chmod 644 "$temporary" ||
		! mv -f "$temporary" "$dropin"; then
		roll_back
		die $EX_CANNOT_CHANGE "$dropin: cannot be written; is the disk full?"
	fi
	# Only new mistakes count: the unit may have had others before.
	wrong=$(verify | grep -vxF -e "$before" | head -n 1)
	if [ -n "$wrong" ]; then
		roll_back
		die $EX_CANNOT_CHANGE "$service: systemd-analyze verify refuses the drop-in: $wrong"
	fi
	if ! reload; then
		roll_back
		die $EX_CANNOT_CHANGE "$service: systemctl daemon-reload has failed; nothing is changed"
	fi
	trap - HUP INT TERM
	rm -f "$temporary.before"
	meaning=$(explain)
	printf '%s\n%sfrom its next start on; now: %s\n' "$dropin" "${meaning:+$meaning$newline}" "$(restart)" 2>/dev/null ||
		die $EX_OTHER "standard output: cannot be written; $dropin is in place"
}

disable_service()
{
	for_all=$(for_all_instances)
	if [ ! -e "$dropin" ]; then
		[ -z "$for_all" ] ||
			die $EX_CANNOT_CHANGE "$service: $for_all is for all instances; fiberize disable ${service%%@*}@ removes it"
		printf '%s: was not enabled\n' "$service"
		return
	fi
	must_be_ours
	rm -f "$dropin" 2>/dev/null || die $EX_CANNOT_CHANGE "$dropin: cannot be removed; $may_be"
	rmdir "$folder_of_dropin" 2>/dev/null
	reload || die $EX_CANNOT_CHANGE "$dropin is removed, but systemctl daemon-reload has failed: run it again"
	if [ -n "$for_all" ]; then
		means="removed, but $for_all is for all instances"
	else
		means="removed; from its next start on; now: $(restart)"
	fi
	printf '%s: %s\n' "$dropin" "$means" 2>/dev/null || die $EX_OTHER "standard output: cannot be written; $dropin is removed"
}

status_of_service()
{
	if [ -z "$root" ] && [ -d /run/systemd/system ]; then
		main=$(systemctl show -P MainPID "$service" 2>/dev/null)
	else
		main=0
	fi
	if [ "${main:-0}" != 0 ]; then
		runs=$("$self" status | awk -v pid="$main" 'NR == 1 || $1 == pid')
		"$self" stat "$main" >/dev/null 2>&1
		case $?:$runs in
		*"$newline"*) printf '%s\n' "$runs" ;;
		$EX_FORBIDDEN:*)
			printf '%s: its process %s may not be looked at; run this as its user or root\n' "$service" "$main" ;;
		*) printf '%s: its process %s does not run under fiberize\n' "$service" "$main" ;;
		esac
	fi
	for_all=$(for_all_instances)
	[ -e "$dropin" ] || dropin=${for_all:-$dropin}
	if [ ! -e "$dropin" ]; then
		printf '%s: not enabled\n' "$service"
		exit $EX_NOT_ENABLED
	fi
	must_be_ours
	grep -q '^Environment="LD_PRELOAD=' "$dropin" ||
		die $EX_NOT_ENABLED "$dropin: sets LD_PRELOAD no more; fiberize enable writes it anew"
	must_have_effect
	preloaded=$(sed -n '/\\/d; s/%%/%/g; s/[$]{LIB}\///; s/^Environment="LD_PRELOAD=\(\/[^:" ]*\).*/\1/p' "$dropin" | tail -n 1)
	[ -z "$preloaded" ] || [ -e "$(file_of "$preloaded")" ] ||
		die $EX_NO_EFFECT "$dropin: $preloaded is not there$(is_below); fiberize enable names the library that is"
	printf '%s: enabled by %s\n' "$service" "$dropin"
	sed -n 's/^Environment=/  /p' "$dropin"
	explain
}

# ---- the command line

command=$1 self=$2 library=$3 lib=$4 variables=$5
shift 5
# Move the variables behind the words of the command line.
count=$variables root=
while [ "$count" -gt 0 ]; do
	set -- "$@" "$1"
	shift
	count=$((count - 1))
done
asked=
left=$(($# - variables))
while [ $left -gt 0 ]; do
	case $1 in
	--help | -h) usage ;;
	--version | -V) exec "$self" --version ;;
	--root)
		[ $left -ge 2 ] || wrong_usage '--root: needs a value'
		root=$2
		shift
		left=$((left - 1))
		;;
	--root=*) root=${1#*=} ;;
	-*) wrong_usage "$1: no such option" ;;
	*)
		[ -z "$asked" ] || wrong_usage "$1: there is one service only"
		asked=$1
		;;
	esac
	shift
	left=$((left - 1))
done
[ -n "$asked" ] || wrong_usage 'no service'
root=${root%/}
[ -z "$root" ] || [ -d "$root" ] || die $EX_USAGE "--root $root: no such directory"
command -v systemd-analyze >/dev/null ||
	die $EX_NO_SYSTEMD 'systemd is not installed here: set LD_PRELOAD where the service is started'
name_service "$asked"
# "disable" needs no unit if the drop-in exists: the unit may have been removed before, or may be masked.
if [ "$command" != disable ] || [ ! -e "$root/etc/systemd/system/$service.d/$name" ]; then
	find_unit
fi
folder_of_dropin=$root/etc/systemd/system/$service.d
dropin=$folder_of_dropin/$name
must_stay_below
[ "$command" = disable ] || read_unit
case $command in
enable) enable_service "$@" ;;
disable) disable_service ;;
*) status_of_service ;;
esac
