#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/dev/deps.sh - installs the Debian packages that a make target needs.  "and" means that a group
# includes others: "demo" includes "build", "check" includes "demo"; "bench" and "all" include "check".
#
#	deps.sh build	what compiles the library
#	deps.sh demo	and what "make demo" runs
#	deps.sh check	and what "make check" and "make bench" run
#	deps.sh bench	and all programs that "make bench" measures; it names those that are missing
#	deps.sh all	and what "make check-all" runs: hundreds of megabytes
#	deps.sh glibc	what "make check-glibc" needs
#	deps.sh oci	what "make check-oci" needs
#	deps.sh fleet	what "make fleet" needs
#	deps.sh -n GROUP	only say what is missing; exit 1 if anything is
#
# Quick and silent if nothing is missing.  Otherwise installs packages as root, or by
# sudo without a password; if neither is possible, prints the command to run and exits 1.
# A package counts as installed if its command or file exists, however it was installed.
set -u

# One "package probe" per line; a probe is a command, or a file if it has a /,
# where LIB stands for the directory of this machine's libraries.
build='
binutils		readelf
g++			g++
gcc			gcc
libc6-dev		/usr/include/stdlib.h
libdw-dev		/usr/include/elfutils/libdwfl.h
libelf-dev		/usr/include/libelf.h
libjson-c-dev		/usr/include/json-c/json.h
libncurses-dev		/usr/include/ncurses.h
liburing-dev		/usr/include/liburing.h
make			make
pkg-config		pkg-config
systemtap-sdt-dev	/usr/include/LIB/sys/sdt.h
'

demo='
curl			curl
procps			pgrep
util-linux		taskset
wrk			wrk
'

check='
bpftrace		bpftrace
clang			clang
dpkg-dev		dpkg-shlibdeps
gcc-aarch64-linux-gnu	aarch64-linux-gnu-gcc
gdb			gdb
git			git
gnuplot-nox		gnuplot
groff			groff
haproxy			haproxy
iproute2		ss
jq			jq
kubernetes-client	kubectl
libc6-dev-arm64-cross	/usr/aarch64-linux-gnu/include/stdlib.h
libc6-i386		/lib32/libc.so.6
libcap2-bin		setcap
libcriterion-dev	/usr/include/criterion/criterion.h
libeatmydata1		/usr/lib/LIB/libeatmydata.so.1
libfaketime		/usr/lib/LIB/faketime/libfaketimeMT.so.1
libjemalloc2		/usr/lib/LIB/libjemalloc.so.2
libmimalloc2.0		/usr/lib/LIB/libmimalloc.so.2
libtcmalloc-minimal4	/usr/lib/LIB/libtcmalloc_minimal.so.4
ltrace			ltrace
man-db			man
memcached		memcached
microsocks		microsocks
musl-tools		musl-gcc
prometheus		promtool
pyflakes3		pyflakes3
openssl			openssl
patch			patch
python3			python3
python3-yaml		/usr/lib/python3/dist-packages/yaml
qemu-user		qemu-aarch64
redis-server		redis-server
redis-tools		redis-cli
shellcheck		shellcheck
spin			spin
strace			strace
stunnel4		stunnel4
tinyproxy-bin		tinyproxy
systemd			systemd-analyze
tmux			tmux
zzuf			zzuf
'

all='
apache2			apache2
apache2-utils		ab
chromium		chromium
crun			crun
default-jdk-headless	javac
golang-go		go
hey			hey
libopenblas-dev		/usr/lib/LIB/libopenblas.so
libtbb-dev		/usr/include/tbb/tbb.h
lintian			lintian
linux-perf		perf
mariadb-server		mariadbd
npm			npm
podman			podman
prometheus-exporter-exporter	prometheus-exporter-exporter
rustc			rustc
sysbench		sysbench
umoci			umoci
valgrind		valgrind
'

bench='
apache2			apache2
apache2-utils		ab
default-jdk-headless	javac
fio			fio
libmemcached-tools	memcslap
mariadb-server		mariadbd
nbdkit			nbdkit
nginx-light		nginx
pigz			pigz
postgresql		/usr/lib/postgresql
proxychains4		proxychains4
ruby			ruby
sysbench		sysbench
tomcat10		/usr/share/tomcat10/bin/catalina.sh
varnish			varnishd
xz-utils		xz
'

oci='
crun			crun
gcc-aarch64-linux-gnu	aarch64-linux-gnu-gcc
jq			jq
kubernetes-client	kubectl
libc6-dev-arm64-cross	/usr/aarch64-linux-gnu/include/stdlib.h
npm			npm
openssl			openssl
podman			podman
python3-yaml		/usr/lib/python3/dist-packages/yaml
qemu-user		qemu-aarch64
systemd			systemd-analyze
umoci			umoci
'

fleet='
curl			curl
default-jdk-headless	javac
haproxy			haproxy
jq			jq
procps			pgrep
prometheus		promtool
prometheus-exporter-exporter	prometheus-exporter-exporter
python3			python3
wrk			wrk
'

glibc='
dpkg-dev		dpkg-source
g++			g++
'

usage='usage: deps.sh [-n] build|demo|check|bench|fleet|glibc|oci|all'
only_say=
if [ "${1-}" = -n ]; then
	only_say=1
	shift
fi
case ${1-} in
build) wanted=$build ;;
demo) wanted=$build$demo ;;
check) wanted=$build$demo$check ;;
all) wanted=$build$demo$check$all ;;
bench) wanted=$build$demo$check$bench ;;
glibc) wanted=$build$glibc ;;
oci) wanted=$build$oci ;;
fleet) wanted=$build$fleet ;;
*)
	printf '%s\n' "$usage" >&2
	exit 2
	;;
esac

# A user's PATH may lack the directories of root's programs.
PATH=$PATH:/usr/sbin:/sbin

missing=
while read -r package probe; do
	case $probe in
	'') continue ;;
	*/LIB/*) probe=${probe%LIB*}$(gcc -print-multiarch 2>/dev/null)${probe#*LIB} ;;
	esac
	case $probe in
	/*) [ -e "$probe" ] && continue ;;
	*) command -v "$probe" >/dev/null && continue ;;
	esac
	missing="$missing $package"
done <<LIST
$wanted
LIST

[ -n "$missing" ] || exit 0
if [ -n "$only_say" ]; then
	printf 'missing:%s\n' "$missing"
	exit 1
fi

command -v apt-get >/dev/null || {
	printf 'deps.sh: no apt-get here. Install what these Debian packages hold:%s\n' \
		"$missing" >&2
	exit 1
}

if [ "$(id -u)" -ne 0 ]; then
	if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		exec sudo -n "$0" "$@"
	fi
	printf 'deps.sh: not root. Please run:\n\tsudo apt-get install --no-install-recommends%s\n' \
		"$missing" >&2
	exit 1
fi

# Some packages start a service when they are installed; the tests start it themselves if they need it.
# invoke-rc.d and deb-systemd-invoke run this file first; exit status 101 forbids to start a service.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
	trap 'rm -f "$policy"' EXIT
	trap 'exit 130' INT
	trap 'exit 143' TERM
	printf '#!/bin/sh\nexit 101\n' >"$policy"
	chmod 755 "$policy"
fi

export DEBIAN_FRONTEND=noninteractive
printf 'deps.sh: installing%s\n' "$missing" >&2
log=$(mktemp) || exit 1
install()
{
	# $missing is split into words on purpose.
	# shellcheck disable=SC2086
	apt-get install -y -q --no-install-recommends $missing >"$log" 2>&1
}

# The package lists may be missing, or older than the packages on the servers.
if ! apt-get update -q >"$log" 2>&1; then
	tail -n 5 "$log" >&2
	echo 'deps.sh: apt-get update failed; trying with the lists that are here' >&2
fi
if install; then
	rm -f "$log"
	exit 0
fi
tail -n 20 "$log" >&2
rm -f "$log"
printf 'deps.sh: apt-get install%s failed\n' "$missing" >&2
exit 1
