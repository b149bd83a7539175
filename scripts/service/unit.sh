# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2086,SC2154 # exit statuses are numbers; service.sh has the variables
#
# scripts/service/unit.sh - finds and reads the unit of a service and its drop-ins; sourced by service.sh.
# Uses root, service, name, mark, tab, die and the exit statuses of service.sh.

# name_service NAME: sets service to the name with ".service"; ends with a message if NAME is no service.
name_service()
{
	case $1 in
	*.service) service=$1 ;;
	*.socket | *.timer | *.target | *.mount | *.path | *.slice | *.scope | *.device | *.swap | *.automount)
		die $EX_NO_SERVICE "$1: not a service; systemctl list-units --type=service --all lists these" ;;
	*) service=$1.service ;;
	esac
	case $service in
	.service | *[!A-Za-z0-9:_.@\\-]*) die $EX_NO_SERVICE "$1: not the name of a service" ;;
	esac
}

# is_ours FILE: has "fiberize enable" written it? A link may lead to a file of this system, or to nothing, and a FIFO would
# keep us waiting.
is_ours()
{
	[ -f "$1" ] && [ ! -L "$1" ] && [ "$(head -n 1 "$1" 2>/dev/null)" = "$mark" ]
}

# for_all_instances: prints our drop-in of the template, if the service is one of its instances and there is such a drop-in
for_all_instances()
{
	case $service in
	*@?*.service) ;;
	*) return ;;
	esac
	of_template=$root/etc/systemd/system/${service%%@*}@.service.d/$name
	! is_ours "$of_template" || printf '%s' "$of_template"
}

# In systemd's order (systemd.unit(5)).
folders='etc/systemd/system.control run/systemd/system.control run/systemd/transient run/systemd/generator.early
	etc/systemd/system etc/systemd/system.attached run/systemd/system run/systemd/system.attached run/systemd/generator
	usr/local/lib/systemd/system usr/lib/systemd/system lib/systemd/system run/systemd/generator.late'

# find_file NAME: sets found to the first file NAME in the folders of units; fails if there is none.
find_file()
{
	for folder in $folders; do
		found=$(file_of "/$folder")/$1
		if [ -e "$found" ] || [ -L "$found" ]; then
			return 0
		fi
	done
	return 1
}

# in_folders PATH: does it lie in a folder of units? A link to another file is a unit of its own, by the name of the link.
in_folders()
{
	where=$(readlink -m "$(file_of "${1%/*}")")
	for folder in $folders; do
		[ "$(readlink -m "$(file_of "/$folder")")" != "$where" ] || return 0
	done
	return 1
}

# Sets unit to the unit's file, and service to its real name if $service is an alias; of an instance the alias names the
# template.
find_unit()
{
	asked=$service
	hops=0
	template=$service
	while :; do
		case $service in
		*@?*.service) template=${service%%@*}@.service ;;
		*) template=$service ;;
		esac
		find_file "$service" || find_file "$template" ||
			die $EX_NO_SERVICE "$asked: there is no such service$(is_below);" \
				"systemctl list-unit-files --type=service${root:+ --root=$root} lists them"
		[ -L "$found" ] || break
		target=$(readlink "$found")
		[ "$target" != /dev/null ] ||
			die $EX_CANNOT_CHANGE "$asked: it is masked: systemctl unmask $asked, if it is to run"
		case $target in
		/*) ;;
		*) target=${found%/*}/$target ;;
		esac
		in_folders "${target#"$root"}" || break
		# A link from an instance (a@b.service) to its template (a@.service) is no alias.
		case ${target##*/}:$service in
		"$template":* | "$service":*) break ;;
		*@.service:*@*) service=${target##*/} service=${service%.service}${asked#*@} ;;
		*) service=${target##*/} ;;
		esac
		hops=$((hops + 1))
		[ $hops -lt 10 ] || die $EX_NO_SERVICE "$asked: its links lead in a circle"
	done
	unit=$(file_of "${found#"$root"}")
	[ -e "$unit" ] || die $EX_CANNOT_CHANGE "$asked: $found is a link to nothing; mend or remove it"
	[ -f "$unit" ] || die $EX_CANNOT_CHANGE "$asked: $unit is not a file; mend or remove it"
	[ -s "$unit" ] || die $EX_CANNOT_CHANGE "$asked: it is masked by $unit, which is empty"
	[ -r "$unit" ] || die $EX_NO_SERVICE "$unit: cannot be read"
}

# file_of PATH: prints the file that PATH is for whom runs below the root: no link and no ".." leads out of it
file_of()
{
	if [ -z "$root" ]; then
		printf '%s' "$1"
		return
	fi
	left=$1 path='' links=0
	while [ -n "$left" ]; do
		part=${left%%/*}
		case $left in
		*/*) left=${left#*/} ;;
		*) left= ;;
		esac
		case $part in
		'' | .) continue ;;
		..)
			path=${path%/*}
			continue
			;;
		esac
		if [ -L "$root$path/$part" ] && [ $links -lt 40 ]; then
			links=$((links + 1))
			target=$(readlink "$root$path/$part")
			left=$target/$left
			case $target in
			/*) path= ;;
			esac
		else
			path=$path/$part
		fi
	done
	printf '%s' "$root$path"
}

is_below()
{
	[ -z "$root" ] || printf ' below %s' "$root"
}

# first_of_each NAME FOLDER...: prints the files *.conf in the folders below the root, of several with one name the first, by
# their names; but not NAME, and none that masks the others by being empty, or a link to nothing or /dev/null.
first_of_each()
{
	but=$1
	shift
	for folder; do
		here=$(file_of "/$folder")
		for file in "$here"/*.conf; do
			{ [ -e "$file" ] || [ -L "$file" ]; } && printf '%s/%s\n' "${file##*/}" "$file"
		done
	done | awk -F / -v but="$but" '$1 != but && !seen[$1]++' | sort -t / -k 1,1 | cut -d / -f 2- |
		while IFS= read -r file; do
			real=$(file_of "${file#"$root"}")
			# systemd-analyze and systemd itself would open it.
			if [ "$real" != "$root/dev/null" ] && { [ -p "$real" ] || [ -c "$real" ] || [ -b "$real" ]; }; then
				die $EX_CANNOT_CHANGE "$file is not a file; mend or remove it"
			fi
			if [ -f "$real" ] && [ ! -r "$real" ]; then
				die $EX_NO_SERVICE "$file: cannot be read"
			fi
			! is_text "$real" || printf '%s\n' "$file"
		done
}

# is_text FILE: can it be read without harm, and is there something in it? A FIFO would keep us waiting.
is_text()
{
	[ -f "$1" ] && [ -r "$1" ] && [ -s "$1" ]
}

# Prints the files of the unit, without our drop-in, in the order in which systemd reads them.  Of several
# drop-ins with one name only the first counts: in the first folder of units, and there in the most special
# folder of drop-ins.
unit_files()
{
	printf '%s\n' "$unit"
	set --
	for folder in $folders; do
		for names in "$service.d" "$template.d" $(prefixes) service.d; do
			set -- "$@" "$folder/$names"
		done
	done
	first_of_each "$name" "$@"
}

# Prints the files of systemd itself (systemd-system.conf(5)): its environment is that of each service.  Only the first
# system.conf counts, before all drop-ins; before systemd 256 there is none but that in /etc.
manager_files()
{
	set -- etc/systemd run/systemd usr/local/lib/systemd usr/lib/systemd lib/systemd
	for folder; do
		file=$(file_of "/$folder/system.conf")
		if [ -e "$file" ]; then
			! is_text "$file" || printf '%s\n' "$file"
			break
		fi
	done
	for folder; do
		set -- "$@" "$folder/system.conf.d"
		shift
	done
	first_of_each '' "$@"
}

# Prints folders of drop-ins by prefix: a-b-c.service also has a-b-.service.d and a-.service.d.
prefixes()
{
	rest=${service%.service}
	while :; do
		case $rest in
		*-?*) rest=${rest%-*} ;;
		*) break ;;
		esac
		printf '%s-.service.d ' "$rest"
	done
}

# facts KEY: prints the values of KEY that unit.awk has found, each in a line
facts()
{
	printf '%s\n' "$all_facts" | sed -n "s/^$1$tab//p"
}

# Prints LD_PRELOAD of the manager's environment, if one runs: "systemctl set-environment" sets it.  % is no specifier there.
manager_preload()
{
	[ -z "$root" ] && [ -d /run/systemd/system ] || return 0
	systemctl show-environment 2>/dev/null | sed -n 's/^LD_PRELOAD=//p' |
		sed -e "/^[$]'.*'\$/ { s/^..//; s/'\$//; s/\\\\\(.\)/\\1/g; }" -e 's/%/%%/g'
}

# Sets all_facts.  awk reads the file that each is below the root, and names it as it is named there.
read_unit()
{
	files=$(manager_files && unit_files) || exit
	IFS_before=$IFS
	IFS='
'
	set -f
	set --
	for file in $files; do
		set -- "$@" "named=$(printf '%s' "$file" | sed 's/\\/&&/g')" "$(file_of "${file#"$root"}")"
	done
	set +f
	IFS=$IFS_before
	all_facts=$(manager_preload=$(manager_preload) awk -f "${0%/*}/unit.awk" "$@") || die 1 "$service: awk has failed"
}
