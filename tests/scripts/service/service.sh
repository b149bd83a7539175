#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/service/service.sh - "fiberize enable", "disable" and "status" of a service: on a system that does not
# run, what is refused, what other settings mean; and where namespaces are allowed, below a systemd of its own.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/booted.inc
. "$(dirname "$0")/../../lib/booted.inc"
# shellcheck source=tests/lib/service.inc
. "$(dirname "$0")/../../lib/service.inc"
need systemd-analyze systemctl setpriv

# ---- a system that does not run

# Makes the link by which the loader of this glibc finds the library in that system, in the folder $links.
link_for_loader()
{
	links=$(ldd "$library" | awk '$1 == "libc.so.6" { print $3 }')
	links=${links%/*}
	links=${library%/*}${links#/usr}
	must mkdir -p "$tree$links"
	must ln -sfr "$tree$library" "$tree$links"
}

# full NAME WHAT: a limit of the size of files stands for a full disk; what is said goes into a pipe
full()
{
	local before
	before=$(state)
	err=$(trap '' XFSZ; ulimit -f 0; "$fiberize" enable --root "$tree" "$1" 2>&1)
	code=$?
	same "a full disk, $2" "101:fiberize: $(dropin "$1"): cannot be written; is the disk full?" "$code:$err"
	same "a full disk, $2: nothing half done" "$before" "$(state)"
}

unit plain
full plain 'no drop-in before'
service status plain
same 'before: status' "99:plain.service: not enabled" "$code:$out"
service enable plain
same 'enable' 0: "$code:$err"
same 'the drop-in' "[Service]${newline}Environment=\"LD_PRELOAD=$library\"" "$(tail -n +2 "$(dropin plain)")"
same 'its mode' 644 "$(stat -c %a "$(dropin plain)")"
like 'says what comes next' '*systemctl restart plain' "$out"
run sh -c '"$1" enable --root "$2" plain >/dev/full' - "$fiberize" "$tree"
like 'enable: what cannot be said' "1:*: standard output: cannot be written; $(dropin plain) is in place" "$code:$err"
unit not_there ExecStart= ExecStart=/usr/sbin/not-there
service enable not_there
like 'a program that is not there' "0:*its program is not there: /usr/sbin/not-there; so nobody has looked*" "$code:$out"
service disable not_there
service status plain.service
like 'then: status' "0:plain.service: enabled by $(dropin plain)*$library*" "$code:$out"
first=$(cat "$(dropin plain)")
service enable plain
same 'enable again: the same' "0:$first" "$code:$(cat "$(dropin plain)")"
same 'enable again: no other file' '50-fiberize.conf' "$(ls -A "$etc/plain.service.d")"
full plain 'a drop-in before'
service disable plain
same 'disable' "0:$(find "$etc" -printf '%P\n')" "$code:"
service disable plain
same 'disable again' "0:plain.service: was not enabled" "$code:$out"

run "$fiberize" -p 2 --backend epoll enable --root="$tree" plain
same 'options' "Environment=\"FIBERIZE_BACKEND=epoll\"${newline}Environment=\"FIBERIZE_PROCESSORS=2\"" \
	"$(grep FIBERIZE_ "$(dropin plain)" | sort)"
run env FIBERIZE_PROCESSORS=3 "$fiberize" enable --root "$tree" plain
same 'variables of the user are not the service'"'s" '' "$(grep FIBERIZE_ "$(dropin plain)")"
mkdir "$work/gone"
must cp -r "$fiberize" "$build/libexec" "$work/gone"
refused 'the library is gone: enable' 115 '*neither installed nor built*' "$work/gone/fiberize" enable --root "$tree" plain
run "$work/gone/fiberize" disable --root "$tree" plain
like 'the library is gone: disable' "0:$(dropin plain): removed; *" "$code:$out$err"
service enable plain
printf '# mine\n[Service]\nUser=x\n' >"$(dropin plain)"
refuses plain 101 '*not written by fiberize enable*'
refused 'disable: a file of the user' 101 '*not written by*' "$fiberize" disable --root "$tree" plain
rm -r "$etc/plain.service.d"

# ---- names

ln -s /usr/lib/systemd/system/plain.service "$etc/alias.service"
service enable alias
yes 'an alias: the service itself' [ -e "$(dropin plain)" ]
service disable plain
unit 'instances@'
service enable instances@one
yes 'an instance' [ -e "$(dropin instances@one)" ]
service disable instances@one
service enable instances@
yes 'all instances' [ -e "$(dropin instances@)" ]
service disable instances@
refuses nonesuch 100 '*there is no such service below *; systemctl list-unit-files --type=service --root=*'
refuses plain.socket 100 '*not a service; systemctl list-units --type=service --all lists these'
refuses '../plain' 100 '*not the name of a service'
ln -s /dev/null "$etc/masked.service"
refuses masked 101 '*masked*systemctl unmask*'
touch "$etc/empty.service"
refuses empty 101 '*masked*'
ln -s b.service "$etc/a.service"
ln -s a.service "$etc/b.service"
refuses a 100 '*circle*'
ln -s /nowhere.service "$etc/nowhere.service"
refuses nowhere 101 '*/nowhere.service is a link to nothing; mend or remove it'
mkdir "$etc/folder.service"
refuses folder 101 '*/folder.service is not a file; mend or remove it'
ln -s /opt/linked.service "$etc/linked.service"
must mkdir -p "$tree/opt"
must cp "$units/plain.service" "$tree/opt/linked.service"
service enable linked
same 'a link that is absolute below the root' 0: "$code:$err"
service disable linked
touch "$etc/plain.service.d"
refuses plain 101 '*cannot be made*'
rm "$etc/plain.service.d"

# ---- where it would have no effect

printf 'A=b\nLD_PRELOAD=/x.so\n' >"$tree/etc/default"
unit file EnvironmentFile=-/etc/missing 'EnvironmentFile=-/etc/defa*'
refuses file 102 '*/etc/default sets LD_PRELOAD*'
unit unset 'UnsetEnvironment=A LD_PRELOAD'
refuses unset 102 '*UnsetEnvironment*'
unit root RootDirectory=/srv
refuses root 102 '*RootDirectory=/srv*'
must cp /sbin/ldconfig "$tree/bin/static"
unit static
sed -i 's#/bin/server#-/bin/static#' "$units/static.service"
refuses static 102 '*statically linked*'
# drop_in UNIT FILE LINE...
drop_in()
{
	mkdir -p "$etc/$1.service.d"
	printf '%s\n' '[Service]' "${@:3}" >"$etc/$1.service.d/$2"
}
unit dropped
drop_in dropped 10-y.conf UnsetEnvironment=LD_PRELOAD
refuses dropped 102 '*UnsetEnvironment*'
drop_in dropped 10-y.conf Environment=LD_PRELOAD=/y.so
drop_in dropped 90-x.conf Environment=LD_PRELOAD=/x.so
refuses dropped 102 '*90-x.conf sets LD_PRELOAD or empties Environment=*'
drop_in dropped 90-x.conf Environment=
refuses dropped 102 '*90-x.conf sets LD_PRELOAD or empties Environment=*'
rm "$etc/dropped.service.d/90-x.conf"
service enable dropped
has 'what another drop-in preloads is kept' "$(dropin dropped)" ':/y.so"$'
drop_in dropped 90-x.conf Environment=
refused 'status: another drop-in counts more' 102 '*90-x.conf sets LD_PRELOAD*' \
	"$fiberize" status --root "$tree" dropped
rm "$etc/dropped.service.d/90-x.conf"
sed -i /LD_PRELOAD/d "$(dropin dropped)"
refused 'status: ours sets nothing any more' 99 '*sets LD_PRELOAD no more*' "$fiberize" status --root "$tree" dropped
printf '# mine\n' >"$(dropin dropped)"
refused 'status: not ours' 101 '*not written by fiberize enable*' "$fiberize" status --root "$tree" dropped
rm "$(dropin dropped)"
service enable dropped
rm "$units/dropped.service"
service disable dropped
same 'disable: the unit has gone before' '0:10-y.conf' "$code:$(ls -A "$etc/dropped.service.d")"
rm -r "$etc/dropped.service.d"
unit instances@ ExecStart= 'ExecStart=/bin/%i%%'
must cp "$tree/bin/static" "$tree/bin/of-one%"
refuses instances@of-one 102 "*: /bin/of-one%: statically linked*"
unit instances@ ExecStart= 'ExecStart=/bin/%i'
service enable instances@
like 'a program that no instance says' "0:*its program is not there: /bin/%i; *" "$code:$out"
service disable instances@
unit only_stops ExecStart= 'ExecStop=/bin/server idle' Type=oneshot
refuses only_stops 102 '*it has no ExecStart=, so no program of it would run under fiberize'
mkdir "$work/outside"
ln -s "$work/outside" "$etc/outside.service.d"
unit outside
refuses outside 101 '*/outside.service.d: a link leads out of *'
same 'a link that leads out: nothing is there' '' "$(ls -A "$work/outside")"
rm "$etc/outside.service.d"
# Not waited for.
must mkfifo "$tree/etc/fifo"
unit fifos EnvironmentFile=/etc/fifo
run timeout 60 "$fiberize" enable --root "$tree" fifos
same 'a FIFO for an environment' 0: "$code:$err"
service disable fifos
rm "$tree/etc/fifo"
unit searched ExecStart= ExecStart=tool ExecSearchPath=/nowhere:/opt/tools
must mkdir -p "$tree/opt/tools"
must cp "$tree/bin/static" "$tree/opt/tools/tool"
refuses searched 102 '*: /opt/tools/tool: statically linked*'
# What systemd itself gives to each service
printf '[Manager]\nDefaultEnvironment=A=b "LD_PRELOAD=/m.so:/n.so"\n' >"$tree/etc/systemd/system.conf"
unit all_have
service enable all_have
like 'an LD_PRELOAD of systemd: kept' '*LD_PRELOAD: kept, behind the library: /m.so:/n.so*' "$out"
has 'an LD_PRELOAD of systemd: the drop-in' "$(dropin all_have)" ':/m.so:/n.so"$'
unit all_have Environment=LD_PRELOAD=/a.so
service enable all_have
same 'an LD_PRELOAD of systemd: that of the unit counts more' 1 "$(grep -c 'libfiberize.so:/a.so"$' "$(dropin all_have)")"
mkdir "$tree/etc/systemd/system.conf.d"
printf '[Manager]\nDefaultEnvironment=\n[Other]\nDefaultEnvironment=LD_PRELOAD=/x.so' >"$tree/etc/systemd/system.conf.d/a.conf"
unit all_have
service enable all_have
same 'an LD_PRELOAD of systemd that is taken back' 1 "$(grep -c 'libfiberize.so"$' "$(dropin all_have)")"
service disable all_have
rm -r "$tree"/etc/systemd/system.conf*
unit behind_env
sed -i 's#/bin/server.*#/usr/bin/env -u A B=c static -x#' "$units/behind_env.service"
refuses behind_env 102 '*statically linked*'
unit drops
for words in '-i' '- A=b' '-u LD_PRELOAD' '--unset=LD_PRELOAD' 'LD_PRELOAD=/a.so'; do
	sed -i "s#^ExecStart=.*#ExecStart=/usr/bin/env $words server#" "$units/drops.service"
	refuses drops 102 '*its env takes LD_PRELOAD away by*'
done
if command -v musl-gcc >/dev/null; then
	printf 'int main(void) { return 0; }\n' >"$work/musl.c"
	must musl-gcc -o "$tree/bin/musl" "$work/musl.c"
	for key in ExecCondition ExecStartPre ExecStartPost ExecReload ExecStop ExecStopPost; do
		unit "other_libc" "$key=-/usr/bin/env A=b musl"
		refuses other_libc 102 "*one of its commands would end at once: $key=musl: *musl*"
	done
	unit other_libc Type=oneshot 'ExecStart=/bin/server ; -/bin/musl x'
	refuses other_libc 102 "*would end at once: ExecStart=/bin/musl: *"
	unit other_libc ExecStartPre=/bin/musl ExecStartPost=/bin/musl
	drop_in other_libc 10-x.conf ExecStartPre= ExecStartPost= ExecStop=
	service enable other_libc
	same 'commands that a drop-in takes back' 0 "$code"
	service disable other_libc
	link_for_loader
	unit other_libc ExecStartPre=/bin/musl 'ExecStart=/bin/server ; -/bin/musl x'
	service enable other_libc
	same 'commands of another libc, where there are links for loaders' 0: "$code:$err"
	service disable other_libc
	must rm -r "$tree${library%/*}"/lib*/
else
	skip 'commands of another libc' 'musl-gcc is not installed'
fi
# A libc without the versions that the library needs, and two loaders: that of this system, and one that has another $LIB.
printf 'void f(void) { }\n' >"$work/libc.c"
printf 'int main(void) { return 0; }\n' >"$work/main.c"
must mkdir "$tree/old"
must "$CC" -shared -nostdlib -Wl,-soname,libc.so.6 -o "$tree/old/libc.so.6" "$work/libc.c"
loader=$(readelf -lW /bin/sh | sed -n 's/.*program interpreter: \(.*\)]/\1/p')
link_for_loader
lib=${links#"${library%/*}/"}
must sed "s#$lib#${lib//?/x}#g" "$loader" >"$tree/old/real.so"
must chmod 755 "$tree/old/real.so"
must ln -s /old/real.so "$tree/old/ld.so"
must "$CC" -Wl,-rpath,/old -o "$tree/bin/old" "$work/main.c"
must "$CC" -Wl,-rpath,/old -Wl,--dynamic-linker=/old/ld.so -o "$tree/bin/older" "$work/main.c"
unit old_libc ExecStartPre=/bin/old
refuses old_libc 102 '*would end at once: ExecStartPre=/bin/old: its libc, /old/libc.so.6, has no GLIBC_*'
unit old_libc ExecStartPre=/bin/older
service enable old_libc
same 'an older glibc whose loader goes elsewhere' 0: "$code:$err"
service disable old_libc
must rm -r "$tree${library%/*}"/lib*/
refuses old_libc 102 '*would end at once: ExecStartPre=/bin/older: its libc, /old/libc.so.6, has no GLIBC_*'
link_for_loader
# shellcheck disable=SC2016 # the loader expands it
unit plain 'Environment=LD_PRELOAD=/a.so:/x/libfiberize.so:/y/$LIB/libfiberize-preload.so:/z/${LIB}/libfiberize.so'
service enable plain
same 'where there are links for loaders: by these' "0::Environment=\"LD_PRELOAD=$named_library:/a.so\"" \
	"$code:$err:$(tail -n 1 "$(dropin plain)")"
service disable plain
unit plain "InaccessiblePaths=$links/"
service enable plain
same 'where the service does not see the links: by the path' "0::Environment=\"LD_PRELOAD=$library\"" \
	"$code:$err:$(tail -n 1 "$(dropin plain)")"
service disable plain
unit plain
must rm -r "$tree${library%/*}"/lib*/
unit hidden "InaccessiblePaths=-/nowhere -${library%/*}"
refuses hidden 102 "*is not there for it, because of InaccessiblePaths=${library%/*}"
unit hidden 'TemporaryFileSystem=/:ro'
refuses hidden 102 '*is not there for it, because of TemporaryFileSystem=/'
unit hidden NoExecPaths=/
refuses hidden 102 '*is not there for it, because of NoExecPaths=/'
unit hidden "NoExecPaths=${library%/*}" ExecPaths=/
refuses hidden 102 "*is not there for it, because of NoExecPaths=${library%/*}"
unit hidden "InaccessiblePaths=\"-+$library\"" InaccessiblePaths=/srv
refuses hidden 102 "*is not there for it, because of InaccessiblePaths=$library"
unit hidden NoExecPaths=/ "ExecPaths=/bin ${library%/*}" "TemporaryFileSystem=${library%/*}" \
	"BindReadOnlyPaths=$library" BindReadOnlyPaths=/x InaccessiblePaths=/ InaccessiblePaths=
service enable hidden
same 'what is given back' 0 "$code"
service disable hidden
for folder in run/systemd/transient run/systemd/generator.late; do
	must mkdir -p "$tree/$folder"
	must mv "$units/hidden.service" "$tree/$folder"
	service enable hidden
	same "a unit in $folder" 0 "$code"
	service disable hidden
	must mv "$tree/$folder/hidden.service" "$units"
done
libc=$(ldd "$helpers/busy" | awk '$1 == "libc.so.6" { print $3 }')
must mv "$tree$libc" "$work/libc"
must cp "$tree/old/libc.so.6" "$tree$libc"
refuses plain 102 "*plain.service: /bin/server: its libc, */libc.so.6, has no GLIBC_*"
must mv "$work/libc" "$tree$libc"
must mv "$tree$loader" "$work/loader"
refuses plain 102 "*plain.service: /bin/server: its loader $loader does not exist"
must mv "$work/loader" "$tree$loader"
unit odd 'Environment=LD_PRELOAD=/a%Zb.so'
refuses odd 101 '*systemd-analyze verify*'
mv "$tree/$library" "$tree/library"
refuses plain 102 '*not there below *'
echo damaged >"$tree/$library"
refuses plain 102 "*plain.service: $library: not a shared library"
mv "$tree/library" "$tree/$library"

# ---- what other settings mean

must mkdir "$tree/etc/fiberize"
touch "$tree/etc/fiberize/disable"
service enable plain
like 'all programs are switched off' "0:*$tree/etc/fiberize/disable is there: all programs run natively until it is removed*" \
	"$code:$out"
rm -r "$tree/etc/fiberize"
service enable plain
same 'and on again' "0:$(dropin plain)" "$code:$(grep -e /fiberize/disable -e "$etc" <<<"$out")"
unit plain Environment=FIBERIZE_DISABLE=1
service enable plain
like 'its unit switches it off' '0:*  Environment=FIBERIZE_DISABLE=1: it runs natively until that is removed from the unit*' "$code:$out"
run "$fiberize" --disable=0 enable --root "$tree" plain
same 'the drop-in switches it on' 0: "$code:$(grep 'runs natively' <<<"$out")"
for line in FIBERIZE_DISABLE=0 FIBERIZE_DISABLED=1 "FIBERIZE_DISABLE=1${newline}Environment="; do
	unit plain "Environment=$line"
	service enable plain
	same "its unit does not switch it off: $line" 0: "$code:$(grep 'runs natively' <<<"$out")"
done
service disable plain
unit strict MemoryDenyWriteExecute=yes 'SystemCallFilter=@system-service' RestrictNamespaces=yes User=www
service enable strict
like 'MemoryDenyWriteExecute' '*MemoryDenyWriteExecute=yes: calls inside libc*' "$out"
like 'RestrictNamespaces' '*RestrictNamespaces=yes: no matter*' "$out"
like 'User' '*User=www: fiberize ps*' "$out"
has 'a list of allowed calls' "$(dropin strict)" '^SystemCallFilter=io_uring_setup'
unit private PrivateTmp=yes
case $library in
/tmp/*) refuses private 102 '*is not there for it, because of PrivateTmp=yes' ;;
*)
	service enable private
	like 'PrivateTmp' '*PrivateTmp=yes: no matter*' "$out"
	;;
esac

# ---- command lines

refused 'no service' 2 '*no service*' "$fiberize" enable
refused 'two services' 2 '*one service*' "$fiberize" enable a b
refused 'no such option' 2 '*no such option*' "$fiberize" enable --nonesuch a
refused 'no such root' 2 '*no such directory' "$fiberize" enable --root /nonexistent a
refused 'dry-run' 2 '*--dry-run*' "$fiberize" --dry-run enable a
refused 'library' 115 '*no such library*' "$fiberize" --library /nonexistent enable --root "$tree" plain
mkdir "$work/bin.none"
for tool in sh sed printf tr readlink; do
	ln -s "$(command -v $tool)" "$work/bin.none"
done
refused 'no systemd' 103 '*systemd is not installed*' env PATH="$work/bin.none" "$fiberize" enable a
run "$fiberize" enable --help
like 'help' 'usage: fiberize *enable *' "$out"

# ---- below a systemd of its own

cat >"$work/work" <<'WORK'
# preload NAME: its LD_PRELOAD, as systemd understands the unit
preload()
{
	# It quotes a word that has a dollar.
	systemctl show -P Environment "$1" | tr ' ' '\n' | sed -n 's/\\\$/$/; s/^"\(LD.*\)"$/\1/; s/^LD_PRELOAD=//p' | grep -v '^/no'
}
for file in "$units"/env*.service; do
	name=${file##*/}
	before=$(preload $name)
	"$fiberize" enable $name >/dev/null
	after=$(preload $name)
	[ "$after" = "$library${before:+:$before}" ] && echo "PASS $name" || echo "FAIL $name <$before> <$after>"
done
# What the manager has in its environment, and not in a file.
"$fiberize" disable env0 >/dev/null
"$fiberize" disable env1 >/dev/null
systemctl set-environment 'LD_PRELOAD=/no.so:/n%o/${LIB}.so'
"$fiberize" enable env0 >said
"$fiberize" enable env1 >/dev/null
echo "manager: $(sed -n 's/.*LD_PRELOAD: kept, behind the library: //p' said)"
"$fiberize" status env0 | sed -n 's/.*LD_PRELOAD: kept, behind the library: /status: /p'
sed -n "s#.*$library##p" /etc/systemd/system/env[01].service.d/50-fiberize.conf | tr '\n' ' '
echo
systemctl unset-environment LD_PRELOAD
look()
{
	"$fiberize" status $1 >said
	code=$?
	echo "$1 $2: $code $(sed -n 's/^ *[0-9][0-9]* server  *[^ ]* *\([^ ]*\) .*/\1/p' said)"
}
for name in live strict filtered narrow; do
	systemctl start $name
	look $name before
	"$fiberize" enable $name >/dev/null
	look $name enabled
	systemctl restart $name
	# Its threads are made soon.  If not, the time of all this is up, and END is missing.
	until "$fiberize" status $name | grep -q -e io_uring -e epoll; do
		sleep 0.05
	done
	look $name restarted
	# As a user who may not look at it: systemctl asks this systemd as root alone.
	echo "$name forbidden: $(setpriv --bounding-set -sys_ptrace "$fiberize" status $name | head -n 1)"
	"$fiberize" disable $name >/dev/null
	systemctl restart $name
	look $name disabled
	systemctl stop $name
done
WORK
unit live
unit strict MemoryDenyWriteExecute=yes SystemCallFilter=@system-service
unit filtered 'SystemCallFilter=~@aio'
unit narrow 'SystemCallFilter=@basic-io @file-system @process @signal ioctl'
unit env0
unit env1 'Environment=A=b "LD_PRELOAD=/a.so" C=d'
unit env2 'Environment=LD_PRELOAD=/a.so' 'Environment=' 'Environment=LD_PRELOAD=/b.so:/c.so'
# shellcheck disable=SC1003 # a line that goes on
unit env3 'Environment=LD_PRELOAD=/a.so \' '# a comment' '  D=e' '; one more' "Environment='B=x LD_PRELOAD=/no.so'"
unit env4 'Environment="B=\"q\" LD_PRELOAD=/no.so" LD_PRELOAD=/%p.so'
unit env5 'Environment=LD_PRELOAD=/a.so' '[X-Other]' 'Environment=LD_PRELOAD=/other.so'
for name in live strict filtered narrow env0 env1 env2 env3 env4 env5; do
	sed -i "s#/bin/server#$tree/bin/server#" "$units/$name.service"
done
rm -rf "$units/masked.service" "$units"/odd.service
can_boot || { skip 'below systemd' "$why"; finish; }
boot 120 "cp '$units'/*.service ." "units=$units" "fiberize=$fiberize" "library=$named_library" ||
	{ skip 'below systemd' "$why"; finish; }
same 'below systemd: came to the end' END "$(tail -n 1 "$work/booted")"
for n in 0 1 2 3 4 5; do
	has "LD_PRELOAD of unit $n, as systemd reads it" "$work/booted" "^PASS env$n"
done
# shellcheck disable=SC2016 # a path as it is
kept='/no.so:/n%%o/${LIB}.so'
has 'the environment of the manager: kept' "$work/booted" "^manager: $kept\$"
has 'the environment of the manager: status' "$work/booted" "^status: $kept\$"
has 'the environment of the manager: of a unit with its own' "$work/booted" "^:$kept\" :/a.so\" \$"
run "$fiberize" check --json "$helpers/busy"
backend=$(jq -r .backend <<<"$out")
for name in live strict narrow filtered; do
	[ $name != filtered ] || backend=epoll
	same "$name: before, enabled, restarted, disabled" \
		"before: 99 ;enabled: 0 ;restarted: 0 $backend;disabled: 99 ;" \
		"$(sed -n "/ forbidden:/d; s/^$name //p" "$work/booted" | tr '\n' ';')"
	has "$name: who may not look at it" "$work/booted" \
		"^$name forbidden: $name.service: its process [0-9]* may not be looked at; run this as its user or root"
done
finish
