# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2086,SC2154 # exit statuses are numbers; service.sh has the variables
#
# scripts/service/unit.sh - finds and reads the unit of a service and its drop-ins; sourced by service.sh.
# Uses root, service, name, tab, die and the exit statuses of service.sh.

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

# In systemd's order (systemd.unit(5)).
folders='etc/systemd/system.control run/systemd/system.control run/systemd/transient run/systemd/generator.early
	etc/systemd/system etc/systemd/system.attached run/systemd/system run/systemd/system.attached run/systemd/generator
	usr/local/lib/systemd/system usr/lib/systemd/system lib/systemd/system run/systemd/generator.late'

# find_file NAME: sets found to the first file NAME in the folders of units; fails if there is none.
find_file()
{
	for folder in $folders; do
		found=$root/$folder/$1
		if [ -e "$found" ] || [ -L "$found" ]; then
			return 0
		fi
	done
	return 1
}

# Sets unit to the unit's file, and service to its real name if $service is an alias.
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
		# A link from an instance (a@b.service) to its template (a@.service) is no alias.
		case ${target##*/} in
		"$template" | "$service") break ;;
		esac
		service=${target##*/}
		hops=$((hops + 1))
		[ $hops -lt 10 ] || die $EX_NO_SERVICE "$asked: its links lead in a circle"
	done
	unit=$(file_of "${found#"$root"}")
	[ -e "$unit" ] || die $EX_CANNOT_CHANGE "$asked: $found is a link to nothing; mend or remove it"
	[ -f "$unit" ] || die $EX_CANNOT_CHANGE "$asked: $unit is not a file; mend or remove it"
	[ -s "$unit" ] || die $EX_CANNOT_CHANGE "$asked: it is masked by $unit, which is empty"
	[ -r "$unit" ] || die $EX_NO_SERVICE "$unit: cannot be read"
}

# file_of PATH: prints the file that PATH is for whom runs below the root, where links may be absolute
file_of()
{
	path=$1
	for _ in 1 2 3 4 5 6 7 8; do
		target=$(readlink "$root$path") || break
		case $target in
		/*) path=$target ;;
		*) path=${path%/*}/$target ;;
		esac
	done
	printf '%s' "$root$path"
}

is_below()
{
	[ -z "$root" ] || printf ' below %s' "$root"
}

# Prints the files of the unit, without our drop-in, in the order in which systemd reads them.  Of several
# drop-ins with one name only the first counts: in the first folder of units, and there in the most special
# folder of drop-ins.
unit_files()
{
	printf '%s\n' "$unit"
	for folder in $folders; do
		for names in "$service.d" "$template.d" $(prefixes) service.d; do
			for file in "$root/$folder/$names"/*.conf; do
				[ -e "$file" ] && printf '%s%s%s\n' "${file##*/}" "$tab" "$file"
			done
		done
	done | awk -F '\t' -v ours="$name" '$1 != ours && !seen[$1]++' | sort -t "$tab" -k 1,1 | cut -f 2
}

# Prints the files of systemd itself: its environment is that of each service.
manager_files()
{
	for file in "$root/etc/systemd/system.conf" "$root"/usr/lib/systemd/system.conf.d/*.conf \
		"$root"/run/systemd/system.conf.d/*.conf "$root"/etc/systemd/system.conf.d/*.conf; do
		[ ! -f "$file" ] || printf '%s\n' "$file"
	done
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

read_unit()
{
	files=$(manager_files && unit_files)
	IFS_before=$IFS
	IFS='
'
	set -f
	# shellcheck disable=SC2086 # one file in each line
	all_facts=$(awk -f "${0%/*}/unit.awk" $files) || die 1 "$service: awk has failed"
	set +f
	IFS=$IFS_before
}
