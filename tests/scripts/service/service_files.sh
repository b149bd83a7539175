#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/service/service_files.sh - which files of a system that does not run "fiberize enable" reads: none out of its
# root and none that is no file, and of several drop-ins of one name the first; which drop-in a template has, and an instance;
# whether the service sees the library there, and may read it.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/service.inc
. "$(dirname "$0")/../../lib/service.inc"
need systemd-analyze systemctl

# kept NAME PRELOADED: enable keeps this LD_PRELOAD, or none
kept()
{
	service enable plain
	same "$1" "0:$2" "$code:$(sed -n 's/^  LD_PRELOAD: kept, behind the library: //p' <<<"$out")"
	service disable plain
}

# conf FILE LINE...
conf()
{
	must mkdir -p "$tree/${1%/*}"
	printf '%s\n' "${@:2}" >"$tree/$1"
}

unit plain

# ---- nothing out of the root

# So many .. that they come to the root of this system.
up=../../../../../../../../../../../../../../..
outside=$work/outside
must mkdir "$outside"
printf '[Service]\nEnvironment=LD_PRELOAD=/outside.so\n' >"$outside/x.conf"
printf '[Service]\nExecStart=/bin/server\nEnvironment=LD_PRELOAD=/outside.so\n' >"$outside/x.service"
printf 'LD_PRELOAD=/outside.so\n' >"$outside/environment"
must mkdir "$etc/plain.service.d"
for target in "$outside/x.conf" "$up$outside/x.conf"; do
	must ln -sf "$target" "$etc/plain.service.d/10-x.conf"
	kept "a drop-in that leads to $target" ''
done
must rm "$etc/plain.service.d/10-x.conf"
must rmdir "$etc/plain.service.d"
must mkdir -p "$tree/run/systemd/system"
must ln -s "$outside" "$tree/run/systemd/system/plain.service.d"
kept 'a folder of drop-ins that leads out' ''
must rm "$tree/run/systemd/system/plain.service.d"
must ln -s "$up$outside/x.service" "$etc/leads.service"
must ln -s "$outside/x.service" "$etc/x.service"
refuses leads 101 '*is a link to nothing; mend or remove it'
must rm "$etc/leads.service" "$etc/x.service"
must mkdir -p "$tree/run/env"
must ln -s "$outside" "$tree/run/env/folder"
must ln -s "$up$outside/environment" "$tree/run/env/link"
unit plain "EnvironmentFile=/run/env/folder/environment" EnvironmentFile=/run/env/link EnvironmentFile=/run/env/l*
kept 'environment files that lead out' ''
unit plain
# The same names below the root.
must mkdir -p "$tree$outside"
must cp "$outside/environment" "$tree$outside"
printf '[Service]\nEnvironment=LD_PRELOAD=/inside.so\n' >"$tree$outside/x.conf"
must mkdir "$etc/plain.service.d"
must ln -s "$up$outside/x.conf" "$etc/plain.service.d/10-x.conf"
kept 'a drop-in that leads to a file below the root' /inside.so
must rm "$etc/plain.service.d/10-x.conf"
must rmdir "$etc/plain.service.d"
unit plain EnvironmentFile=/run/env/f*/environment EnvironmentFile=/run/env/l*
refuses plain 102 '*/run/env/link sets LD_PRELOAD*'
conf run/parts-a/env LD_PRELOAD=/e.so
unit plain 'EnvironmentFile=-/run/parts*/env'
refuses plain 102 '*/run/parts-a/env sets LD_PRELOAD*'
conf 'run/sp ace/e nv' LD_PRELOAD=/e.so
unit plain 'EnvironmentFile=/run/sp ace/e nv'
refuses plain 102 '*/run/sp ace/e nv sets LD_PRELOAD*'
conf etc/default/plain LD_PRELOAD=/e.so
unit plain EnvironmentFile=-/etc/default/%p
refuses plain 102 '*/etc/default/plain sets LD_PRELOAD*'
# As systemd 252 reads them.
unit plain EnvironmentFile=/run/values
for text in 'LD_PRELOAD = /e.so' '\t LD_PRELOAD\t=' 'A=b"c\nLD_PRELOAD=/e.so\n"' "A=\"b'\"\nLD_PRELOAD=/e.so" 'A="b\\\\"\nLD_PRELOAD=/e.so' \
	'A=\\"b\nLD_PRELOAD=/e.so' 'A=b\\\n\nLD_PRELOAD=/e.so' 'A=b\r\nLD_PRELOAD=/e.so\r\n' 'A=b\\\r\nLD_PRELOAD=/e.so\r\n' 'A=b\rLD_PRELOAD=/e.so' \
	'A\nLD_PRELOAD=/e.so'; do
	# shellcheck disable=SC2059
	printf "$text" >"$tree/run/values"
	refuses plain 102 '*/run/values sets LD_PRELOAD*'
done
for text in 'A="b\nLD_PRELOAD=/e.so"' "A='b\\\\\nLD_PRELOAD=/e.so'" 'A=b\\\nLD_PRELOAD=/e.so' 'A="b\\"\nLD_PRELOAD=/e.so"' \
	'A= "b" "c\nLD_PRELOAD=/e.so"' '; LD_PRELOAD=/e.so' 'export LD_PRELOAD=/e.so' 'LD_PRELOAD\n=/e.so' '"LD_PRELOAD"=/e.so'; do
	# shellcheck disable=SC2059
	printf "$text" >"$tree/run/values"
	kept "not set: $text" ''
done
unit plain
conf $'etc/systemd/system/plain.service.d/40\tt.conf' '[Service]' Environment=LD_PRELOAD=/tab.so
kept 'a tab in the name of a drop-in' /tab.so
must rm -r "$etc/plain.service.d"
# shellcheck disable=SC1003 # a line that goes on
conf etc/systemd/system/plain.service.d/10-a.conf '[Service]' 'Environment=LD_PRELOAD=/last.so \'
conf etc/systemd/system/plain.service.d/20-b.conf '[Service]' Nice=1
kept 'a backslash at the end of a drop-in' /last.so
must mv "$etc/plain.service.d/10-a.conf" "$etc/plain.service.d/60-a.conf"
must mv "$etc/plain.service.d/20-b.conf" "$etc/plain.service.d/70-b.conf"
refuses plain 102 '*/60-a.conf sets LD_PRELOAD*'
must rm -r "$etc/plain.service.d"
# shellcheck disable=SC1003 # a line that goes on
unit plain 'Environment=LD_PRELOAD=/last.so \'
kept 'a backslash at the end of the unit' /last.so
# shellcheck disable=SC1003 # no quote
unit plain 'ExecStart=/bin/server C:\\' Environment=LD_PRELOAD=/next.so
kept 'two backslashes at the end of a line' /next.so
unit plain

# ---- a library that has gone

# As if another installation had written it.
service enable plain
# shellcheck disable=SC2016 # for the loader
for elsewhere in '/opt/fiberize/${LIB}/libfiberize.so' /opt/fiberize/libfiberize.so:/x.so; do
	sed -i "s#LD_PRELOAD=[^\"]*#LD_PRELOAD=$elsewhere#" "$(dropin plain)"
	refused "status: $elsewhere" 102 "*50-fiberize.conf: /opt/fiberize/libfiberize.so is not there below *; fiberize enable names *" \
		"$fiberize" status --root "$tree" plain
	conf opt/fiberize/libfiberize.so ''
	service status plain
	like "status: $elsewhere, where it is there" '0:plain.service: enabled by *' "$code:$out"
	must rm "$tree/opt/fiberize/libfiberize.so"
done
# Which the loader searches for.
sed -i 's#LD_PRELOAD=[^"]*#LD_PRELOAD=libfiberize.so#' "$(dropin plain)"
service status plain
like 'status: a name without a path' '0:plain.service: enabled by *' "$code:$out"
service enable plain
has 'status: enabled anew' "$(dropin plain)" "LD_PRELOAD=${library%/*}/"
service disable plain

# ---- a unit as an editor of another system leaves it

printf '\357\273\277[Service]\r\nExecStart=/bin/server idle\r\nEnvironment=LD_PRELOAD=/bom.so\r\n' >"$units/marked.service"
service enable marked
like 'a byte order mark' '0:*LD_PRELOAD: kept, behind the library: /bom.so*' "$code:$out"
service disable marked

# ---- another folder in the library's place

above=${library%/*/*}
for line in "BindReadOnlyPaths=/bin:$above" "BindPaths=/bin:${library%/*}:rbind" "BindPaths=-/bin:$above" "BindPaths=/:$above"; do
	unit bound "$line"
	refuses bound 102 "*$library is not there for it, because of $line"
done
for line in "BindReadOnlyPaths=$above" "BindPaths=$above:$above" "BindPaths=-/nowhere:$above" "BindPaths=/bin:$above/x" \
	"BindPaths=/bin:$above ${library%/*}"; do
	unit bound "$line"
	service enable bound
	same "not in its place: $line" 0: "$code:$err"
	service disable bound
done
must mkdir -p "$tree/opt/copy/${build##*/}"
must cp "$library" "$tree/opt/copy/${build##*/}"
unit bound "BindPaths=/opt/copy:$above"
service enable bound
same 'another folder that has the file' 0: "$code:$err"
service disable bound
unit bound@ "BindPaths=/opt/%i:$above"
service enable bound@copy
same 'the folder of an instance, which has the file' 0: "$code:$err"
service disable bound@copy
refuses bound@other 102 "*$library is not there for it, because of BindPaths=/opt/%i:$above"
for name in bound@ bound; do
	unit $name "BindPaths=-%S/%i:$above" "BindPaths=/bin:${above%/*}"
	service enable $name
	same "a folder that is not known: $name" 0: "$code:$err"
	service disable $name
done

# ---- a library that the service's user may not read

# not_open LINE: enable says so of a service with this line
not_open()
{
	unit bound "$1"
	service enable bound
	like "$1: not open" "0:*$newline  $1: *${library%/*}* is not open to all: *" "$code:$out"
}
dynamic=DynamicUser=yes
case $library in
/tmp/* | /var/tmp/*)
	# Which implies PrivateTmp=.
	unit bound $dynamic
	refuses bound 102 "*$library is not there for it, because of $dynamic"
	dynamic=User=nobody
	;;
esac
for mode in 750 700; do
	must chmod $mode "$tree${library%/*}"
	not_open User=www
	not_open $dynamic
	for line in User=root User=0 Nice=1; do
		unit bound "$line"
		service enable bound
		same "$line, a folder of mode $mode" 0: "$code:$(grep 'not open' <<<"$out")"
	done
done
must chmod 711 "$tree${library%/*}"
unit bound User=www
service enable bound
same 'a folder of mode 711' 0: "$code:$(grep 'not open' <<<"$out")"
must chmod 640 "$tree$library"
not_open User=www
must chmod 644 "$tree$library"
service disable bound
must chmod 755 "$tree${library%/*}"

# ---- letters by their codes

must cp /sbin/ldconfig "$tree/bin/st at"
for name in 'st\x20at' 'st\040at' 'st\sat' 'st\x20\x61t'; do
	unit coded ExecStart= "ExecStart=/bin/$name idle"
	refuses coded 102 '*coded.service: /bin/st at: statically linked*'
done
unit coded 'Environment=LD_PRELOAD=/\x61\142\q\x1\x0ac.so'
service enable coded
like 'codes of no letter' '0:*kept, behind the library: /abqx1c.so*' "$code:$out"
service disable coded

# ---- what to type

unit 'a\x2db'
for command in enable disable; do
	service $command 'a\x2db'
	same "$command: a backslash in the name" "0:systemctl restart 'a\x2db'" "$code:${out##*now: }"
done

# ---- a unit from elsewhere

must mkdir -p "$tree/opt/service"
must cp "$units/plain.service" "$tree/opt/service/inner.service"
for target in /opt/service/inner.service ../../../opt/service/inner.service; do
	must ln -sf "$target" "$etc/linked.service"
	service enable linked
	same "a link to $target" "0:$(dropin linked)" "$code:$(find "$etc" -name '*.conf')"
	service disable linked
done

# ---- templates

unit template@
must ln -s template@.service "$units/other@.service"
must ln -s "$units/template@.service" "$etc/other@fixed.service"
for name in other@one other@fixed; do
	service enable $name
	same "an alias of a template: $name" "0:$etc/template@${name#*@}.service.d/50-fiberize.conf" "$code:$(find "$etc" -name '*.conf')"
	like "an alias of a template: $name: what to type" "*now: systemctl restart template@${name#*@}" "$out"
	service status $name
	like "an alias of a template: $name: status" "0:template@${name#*@}.service: enabled by *" "$code:$out"
	service disable $name
	same "an alias of a template: $name: disabled" 0: "$code:$(find "$etc" -name '*.conf')"
done
service enable other@
for_all=$etc/template@.service.d/50-fiberize.conf
like 'all instances: what to type' "0:$for_all$newline*now: systemctl restart 'template@?'" "$code:$out"
service status template@one
like 'all instances: status of one' "0:template@one.service: enabled by $for_all$newline*" "$code:$out"
refused 'all instances: disable one' 101 "*template@one.service: $for_all is for all instances; fiberize disable template@ removes it" \
	"$fiberize" disable --root "$tree" template@one
yes 'all instances: that is left' [ -e "$for_all" ]
service enable template@one
service disable template@one
same 'all instances, and one: disable one' "0:$(dropin template@one): removed, but $for_all is for all instances" "$code:$out"
service disable template@
same 'all instances: disable' "0:$for_all: removed; from its next start on; now: systemctl restart 'template@*'" "$code:$out"
service status template@one
same 'no instance: status of one' '99:template@one.service: not enabled' "$code:$out"
conf "${for_all#"$tree"}" '[Service]' Nice=1
service status template@one
same 'that of all instances is not ours: status of one' '99:template@one.service: not enabled' "$code:$out"
service disable template@one
same 'that of all instances is not ours: disable one' '0:template@one.service: was not enabled' "$code:$out"
must rm -r "${for_all%/*}"

# ---- no FIFO is opened: whoever reads it waits

must mkdir -p "$etc/plain.service.d"
must mkfifo "$etc/plain.service.d/10-x.conf"
refuses plain 101 '*/10-x.conf is not a file; mend or remove it'
must rm "$etc/plain.service.d/10-x.conf"
must mkfifo "$etc/plain.service.d/50-fiberize.conf"
refuses plain 101 '*/50-fiberize.conf: not written by fiberize enable; remove or rename it'
must rm "$etc/plain.service.d/50-fiberize.conf"
must ln -s /nowhere "$etc/plain.service.d/50-fiberize.conf"
refuses plain 101 '*/50-fiberize.conf: not written by fiberize enable; remove or rename it'
must rm -r "$etc/plain.service.d"
must mkfifo "$tree/etc/systemd/system.conf"
kept 'a FIFO for system.conf' ''
must rm "$tree/etc/systemd/system.conf"

# ---- the first of each name

own=etc/systemd/system.conf.d vendor=usr/lib/systemd/system.conf.d local=usr/local/lib/systemd/system.conf.d
conf $local/a.conf '[Manager]' DefaultEnvironment=LD_PRELOAD=/local.so
kept 'systemd: usr/local/lib' /local.so
conf $vendor/a.conf '[Manager]' DefaultEnvironment=LD_PRELOAD=/vendor.so
kept 'systemd: usr/local/lib is before usr/lib' /local.so
conf run/systemd/system.conf.d/a.conf '[Manager]' DefaultEnvironment=LD_PRELOAD=/run.so
kept 'systemd: run is before both' /run.so
must mkdir -p "$tree/$own"
must ln -s /dev/null "$tree/$own/a.conf"
kept 'systemd: masked by a link to /dev/null' ''
must rm "$tree/$own/a.conf"
: >"$tree/$own/a.conf"
kept 'systemd: masked by an empty file' ''
conf $vendor/50-fiberize.conf '[Manager]' DefaultEnvironment=LD_PRELOAD=/b.so
kept 'systemd: a drop-in of that name is not ours' /b.so
conf $own/0.conf '[Manager]' DefaultEnvironment=LD_PRELOAD=/0.so
kept 'systemd: by names, not by folders' /b.so
must rm -r "$tree/$own" "$tree/$vendor" "$tree/$local" "$tree/run/systemd/system.conf.d"
conf usr/lib/systemd/system.conf '[Manager]' DefaultEnvironment=LD_PRELOAD=/main.so
kept 'systemd: system.conf in usr/lib' /main.so
conf etc/systemd/system.conf '[Manager]'
kept 'systemd: that in etc alone' ''
conf usr/lib/systemd/system/plain.service.d/10-a.conf '[Service]' Environment=LD_PRELOAD=/vendor.so
kept 'a drop-in of a package' /vendor.so
must mkdir -p "$etc/plain.service.d"
must ln -s nowhere "$etc/plain.service.d/10-a.conf"
kept 'a drop-in of a package, masked by a link to nothing' ''
finish
