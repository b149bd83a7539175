# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2034,SC2086,SC2154 # exit statuses are numbers; service.sh has the variables
#
# scripts/service/effect.sh - would the drop-in have an effect, and a good one? Sourced by service.sh.
# Uses root, self, service, template, unit, library, lib, name, tab, die, is_yes, is_no and the exit statuses of service.sh, and
# facts, file_of and is_text of unit.sh.  must_have_effect sets named, the library's name for LD_PRELOAD, verdict, and of the system calls
# that SystemCallFilter= does not allow: added, those to be added, and without_io_uring, "yes" if it forbids these.

# matching PATTERN: prints the files below the root that match; links lead to what they are below the root
matching()
{
	rest=${1#/} below=/
	while [ -n "$rest" ]; do
		part=${rest%%/*}
		case $rest in
		*/*) rest=${rest#*/} ;;
		*) rest= ;;
		esac
		below=$(printf '%s\n' "$below" | while IFS= read -r folder; do
			here=$(file_of "$folder")
			# Not quoted, so that it may be a pattern, and not split.
			IFS=
			for one in "$here"/$part; do
				[ ! -e "$one" ] && [ ! -L "$one" ] || printf '%s\n' "${folder%/}/${one##*/}"
			done
		done)
	done
	printf '%s\n' "$below"
}

# Prints the last EnvironmentFile= that sets LD_PRELOAD: it has priority over Environment= of a drop-in.
overriding_file()
{
	facts file | while IFS= read -r file; do
		file=$(specified "${file#-}")
		# systemd ignores these.
		case $file/ in
		*/../* | [!/]*) continue ;;
		esac
		matching "$file" | while IFS= read -r one; do
			real=$(file_of "$one")
			# A FIFO would keep us waiting, or lose to us what is for the service.  A carriage return ends a line, too.
			if is_text "$real" && tr '\r' '\n' <"$real" | awk -f "${0%/*}/environment.awk"; then
				printf '%s\n' "$root$one"
			fi
		done
	done | tail -n 1
}

# covering KEY FILE: prints the longest path of a setting that is the file or a folder above it, without its options.
covering()
{
	facts "$1" | while IFS= read -r value; do
		value=${value#-}
		value=${value#+}
		case $1 in
		Bind*) value=${value#*:} ;;
		esac
		value=${value%%:*}
		case $2 in
		"$value" | "${value%/}"/*) printf '%s %s\n' "${#value}" "$value" ;;
		esac
	done | sort -n | tail -n 1 | cut -d ' ' -f 2-
}

# hidden_by FILE: prints the setting because of which the service has no such file
hidden_by()
{
	for key in RootDirectory RootImage; do
		value=$(facts $key)
		if [ -n "$value" ] && [ "$value" != / ]; then
			printf '%s=%s' $key "$value"
			return
		fi
	done
	case $1 in
	/home/* | /root/* | /run/user/*)
		value=$(facts ProtectHome)
		if [ -n "$value" ] && [ "$value" != read-only ] && ! is_no "$value"; then
			printf 'ProtectHome=%s' "$value"
			return
		fi
		;;
	/tmp/* | /var/tmp/*)
		# DynamicUser= has the same effect.
		for key in PrivateTmp DynamicUser; do
			value=$(facts $key)
			if is_yes "$value" || [ "$value" = disconnected ]; then
				printf '%s=%s' $key "$value"
				return
			fi
		done
		;;
	esac
	# What takes a path away, and what gives it or a part of it back.
	for keys in InaccessiblePaths: TemporaryFileSystem:BindPaths:BindReadOnlyPaths NoExecPaths:ExecPaths; do
		taken=$(covering "${keys%%:*}" "$1")
		for key in $(printf '%s' "${keys#*:}" | tr ':' ' '); do
			given=$(covering "$key" "$1")
			[ ${#given} -lt ${#taken} ] || taken=
		done
		if [ -n "$taken" ]; then
			printf '%s=%s' "${keys%%:*}" "$taken"
			return
		fi
	done
	bound_over "$1"
}

# bound_over FILE: prints the setting that mounts another folder above the file, if that has no such file
bound_over()
{
	for key in BindPaths BindReadOnlyPaths; do
		facts $key | while IFS= read -r value; do
			source=$(specified "${value#-}")
			target=${source#*:}
			source=${source%%:*}
			target=${target%%:*}
			file=${source%/}${1#"${target%/}"}
			case $source in
			# What is not known before the service runs may have the file.
			*%*) file=/ ;;
			# systemd passes over one with a "-" whose folder is not there.
			*) [ "${value#-}" = "$value" ] || [ -e "$(file_of "$source")" ] || continue ;;
			esac
			case $1 in
			"${target%/}"/*) printf '%s\t%s=%s\t%s\n' "${#target}" $key "$value" "$file" ;;
			esac
		done
	done | sort -n | tail -n 1 | while IFS="$tab" read -r _ setting file; do
		[ -e "$(file_of "$file")" ] || printf '%s' "$setting"
	done
}

# closed_to_others FILE: prints the file, or the folder above it, that is not open to all users
closed_to_others()
{
	path=$(readlink -f "$(file_of "$1")") top=$(readlink -f "${root:-/}") wanted=-0004
	while [ -n "$path" ] && [ "$path" != "$top" ]; do
		if [ -n "$(find "$path" -prune ! -perm $wanted 2>/dev/null)" ]; then
			printf '%s' "$path"
			return
		fi
		path=${path%/*} wanted=-0001
	done
}

# specified TEXT: prints it with the specifiers (%i ...) that follow from the service's name; others stay as they are
specified()
{
	case $1 in
	*%*) ;;
	*)
		printf '%s' "$1"
		return
		;;
	esac
	whole=${service%.service} prefix=${service%.service} instance=
	case $whole in
	*@*) prefix=${whole%%@*} instance=${whole#*@} ;;
	esac
	rules="s/%p/$prefix/g"
	# All instances of a template together have no name.
	[ "$template" = "$service" ] && [ "$prefix" != "$whole" ] ||
		rules="$rules; s/%n/$service/g; s/%N/$whole/g; s/%i/$instance/g"
	case $instance in
	*[-\\]*) ;;
	*) rules="$rules; s/%I/$instance/g" ;;
	esac
	printf '%s' "$1" | sed "s/%%/$tab/g; $(printf '%s' "$rules" | sed 's/\\/&&/g'); s/$tab/%/g"
}

# path_of PROGRAM: prints its path, below the root.  The program behind env(1) may be a name without a path, which is
# searched for in the folders that systemd searches.
path_of()
{
	wanted=$(specified "$1")
	case $wanted in
	*/*) printf '%s' "$wanted" ;;
	*)
		folders_of_programs=$(facts ExecSearchPath | tr ':' ' ')
		for folder in ${folders_of_programs:-/usr/local/sbin /usr/local/bin /usr/sbin /usr/bin /sbin /bin}; do
			if [ -f "$root$folder/$wanted" ]; then
				printf '%s' "$folder/$wanted"
				return
			fi
		done
		printf '/%s' "$wanted" ;;
	esac
}

# counts_more FILE: is it a drop-in that systemd reads after ours?
counts_more()
{
	[ -n "$1" ] && [ "$1" != "$unit" ] &&
		[ "$(printf '%s\n' "${1##*/}" "$name" | sort | tail -n 1)" != "$name" ]
}

# look_at PATH: prints the report of "fiberize check", which takes all files from below the root
look_at()
{
	"$self" --no-profiles --library "$library" check ${root:+--root "$root"} "$1" 2>&1
}

# Sets named, the name by which LD_PRELOAD names the library: by ${LIB}, as the launcher does, if the service sees the link.
name_library()
{
	link=${library%/*}/$lib/${library##*/}
	named=$library
	[ -z "$lib" ] || [ "$(readlink -f "$root$link")" != "$(readlink -f "$root$library")" ] ||
		[ -n "$(hidden_by "$link")" ] || named="${library%/*}/\${LIB}/${library##*/}"
}

# fact_of REPORT NAME: prints what a report of "fiberize check" says in the line of this name
fact_of()
{
	printf '%s\n' "$1" | sed -n "s/^$2  *//p"
}

# passes_by REPORT: is it a program of another libc, whose loader does not come to the library by the name in LD_PRELOAD?
# The loader of musl does not; that of an older glibc if it has another text for $LIB, so $lib is nowhere in its file.
# Most systems of one family have the same.
passes_by()
{
	[ "$named" != "$library" ] || return 1
	case $(fact_of "$1" kind) in
	musl) ;;
	'old glibc') ! grep -qF -e "$lib" "$(file_of "$(fact_of "$1" loader)")" ;;
	*) return 1 ;;
	esac
}

# The drop-in counts for every command of the unit, and the loader of another libc ends a program that the library is
# preloaded into.
others_must_run()
{
	bad=$(facts also | awk -F '\t' '!seen[$2]++' | while IFS="$tab" read -r key program; do
		report=$(look_at "$(path_of "$program")")
		[ $? -ne $EX_OTHER_LIBC ] || passes_by "$report" ||
			printf '%s=%s: %s\n' "$key" "$program" "$(printf '%s\n' "$report" | sed -n 's/^verdict *cannot: [^:]*: //p')"
	done | head -n 1)
	[ -z "$bad" ] || die $EX_NO_EFFECT "$service: with the library one of its commands would end at once: $bad"
}

# A filter that ends the process at a call of the library would end a service that runs without it.  One that makes the call
# fail does no harm.  What an administrator has forbidden by name is not given back.
look_at_filter()
{
	added='' without_io_uring='' kind=$(facts filter)
	[ -n "$kind" ] || return 0
	found=$(systemd-analyze syscall-filter 2>/dev/null | awk -f "${0%/*}/filter.awk" -v "kind=$kind" \
		-v "words=$(facts filter_word | tr '\n' ' ')" -v "number=$(facts SystemCallErrorNumber)")
	! printf '%s\n' "$found" | grep -q -E '^(kills|denied) io_uring' || without_io_uring=yes
	ends=$(printf '%s\n' "$found" | sed -n '/ io_uring/d; s/^kills //p' | head -n 1)
	[ -z "$ends" ] ||
		die $EX_NO_EFFECT "$service: its SystemCallFilter= would end it: ${ends#* } forbids ${ends% *}," \
			"which the library calls; allow that, or set SystemCallErrorNumber=EPERM"
	[ "$kind" = deny ] || added=$(
		[ -n "$without_io_uring" ] || printf 'io_uring_setup io_uring_enter io_uring_register '
		printf '%s\n' "$found" | sed -n '/ io_uring/d; s/^missing //p' | tr '\n' ' '
	)
	added=${added% }
	file=$(facts filter_file)
	[ -z "$added" ] || ! counts_more "$file" ||
		die $EX_NO_EFFECT "$service: $file empties SystemCallFilter=, and counts more than $name: rename it"
}

must_have_effect()
{
	[ -e "$root$library" ] || die $EX_NO_EFFECT "$library: not there$(is_below); install fiberize there"
	name_library
	[ -z "$(facts unset)" ] ||
		die $EX_NO_EFFECT "$service: its UnsetEnvironment= takes LD_PRELOAD away; delete that first"
	file=$(overriding_file)
	[ -z "$file" ] ||
		die $EX_NO_EFFECT "$service: $file sets LD_PRELOAD, and counts more than a drop-in: add $named there"
	file=$(facts preload_file)
	! counts_more "$file" ||
		die $EX_NO_EFFECT "$service: $file sets LD_PRELOAD or empties Environment=, and counts more than $name: rename it"
	hidden=$(hidden_by "$library")
	[ -z "$hidden" ] || die $EX_NO_EFFECT "$service: $library is not there for it, because of $hidden"
	drops=$(facts env_drops)
	[ -z "$drops" ] || die $EX_NO_EFFECT "$service: its env takes LD_PRELOAD away by $drops; delete that first"
	[ -n "$(facts exec)" ] ||
		die $EX_NO_EFFECT "$service: it has no ExecStart=, so no program of it would run under fiberize"
	look_at_filter
	others_must_run
	program=$(path_of "$(facts exec)")
	if report=$(look_at "$program"); then
		verdict=$(fact_of "$report" verdict)
		return
	fi
	reason=$(printf '%s\n' "$report" | sed -n 's/^verdict *cannot: //p; s/^fiberize: //p')
	[ "$reason" = "$program: no such program" ] || die $EX_NO_EFFECT "$service: $reason"
	verdict="is not there: $program; so nobody has looked whether it can run under fiberize"
}
