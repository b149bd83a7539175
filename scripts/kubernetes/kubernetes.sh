#!/bin/sh
# SPDX-License-Identifier: MIT
#
# scripts/kubernetes/kubernetes.sh - "fiberize kubernetes": prints manifests for "kubectl apply -f -".  With
# them, pods get the library when they are created.
#
#	kubernetes.sh VERSION [OPTIONS]
#
# The manifests are made from base/ and profiles.yaml in the directory "kubernetes" beside this script.  A line
# that ends in "# --OPTION" is changed by that option.  If anything fails, nothing is printed.
set -u
export LC_ALL=C

EX_OTHER=1
EX_USAGE=2
EX_NO_FIT=102

here=$(dirname -- "$0")/kubernetes
release=$1
shift
image='' archs='' layout='' api='' selector='' namespaces='' mixed='' cluster=''

die()
{
	code=$1
	shift
	printf 'fiberize: %s\n' "$(printf '%s' "$*" | tr '\000-\037\177' '?')" >&2
	exit "$code"
}

usage()
{
	cat <<'USAGE'
usage: fiberize kubernetes --image IMAGE [options]

Prints manifests for "kubectl apply -f -" and "kubectl delete -f -": pods that are created in namespaces with
the label fiberize/inject=enabled get the library from IMAGE ("make oci-all" makes one).

  --image IMAGE
        the image's name, as the nodes pull it
  --layout DIR
        the image's OCI layout: take its architecture from there
  --arch ARCH[,ARCH...]
        the architectures that the image is for (as in the label kubernetes.io/arch; this machine's)
  --mixed
        change only pods whose nodeSelector names one of them: the cluster has nodes of others, too
  --api v1|v1beta1
        the version of the API: v1 (1.36 and newer) or v1beta1 (1.34 and 1.35, where it is switched on)
  --cluster
        ask the cluster that kubectl is set up for: which version, which nodes
  --namespace-selector KEY=VALUE
        the label of the namespaces (fiberize/inject=enabled)
  --profiles NAMESPACE
        the ConfigMap of profiles for a namespace, too; may be given several times
USAGE
	exit 0
}

wrong_usage()
{
	die $EX_USAGE "kubernetes: $*; see fiberize kubernetes --help"
}

# ---- the command line

# matches TEXT EXPRESSION: is TEXT one line, and does the whole line match?
matches()
{
	case $1 in
	*"
"*) return 1 ;;
	esac
	printf '%s\n' "$1" | grep -Eqx -e "$2"
}

option()
{
	path='[a-z0-9]+((\.|_|__|-+|/)[a-z0-9]+)*' tag='[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}' digest='sha256:[0-9a-f]{64}'
	label='[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?'
	case $1 in
	--image)
		# A registry has a dot or a port; the path is in lower case; then a tag, a digest, or both.
		matches "$2" "(([A-Za-z0-9-]+\\.[A-Za-z0-9.-]+|localhost|[A-Za-z0-9.-]+:[0-9]+)(:[0-9]+)?/)?$path(:$tag)?(@$digest)?" ||
			wrong_usage "$2: not the name of an image, such as registry.example/fiberize:1"
		image=$2
		;;
	--layout) layout=$2 ;;
	--arch)
		matches "$2" '[a-z0-9]+(,[a-z0-9]+)*' || wrong_usage "$2: not a list of architectures, such as amd64,arm64"
		archs=$(printf '%s' "$2" | tr , ' ')
		;;
	--api)
		matches "$2" 'v1|v1beta1' || wrong_usage "$2: not v1 or v1beta1"
		api=$2
		;;
	--namespace-selector)
		matches "$2" "([a-z0-9][a-z0-9.-]*/)?$label=$label" || wrong_usage "$2: not a label, KEY=VALUE"
		selector=$2
		;;
	--profiles)
		matches "$2" '[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?' || wrong_usage "$2: not the name of a namespace"
		case " $namespaces " in
		*" $2 "*) ;;
		*) namespaces="$namespaces $2" ;;
		esac
		;;
	esac
}

while [ $# -gt 0 ]; do
	case $1 in
	-h | --help) usage ;;
	--mixed) mixed=1 ;;
	--cluster) cluster=1 ;;
	--image=* | --layout=* | --arch=* | --api=* | --namespace-selector=* | --profiles=*)
		option "${1%%=*}" "${1#*=}"
		;;
	--image | --layout | --arch | --api | --namespace-selector | --profiles)
		[ $# -ge 2 ] || wrong_usage "$1 needs a value"
		option "$1" "$2"
		shift
		;;
	*) wrong_usage "$1: no such option" ;;
	esac
	shift
done
[ -n "$image" ] || wrong_usage "no image; --image IMAGE"
for file in base/policy.yaml base/warning.yaml base/bindings.yaml profiles.yaml; do
	{ [ -r "$here/$file" ] && [ -s "$here/$file" ]; } ||
		die $EX_OTHER "$here/$file: empty or unreadable; install fiberize completely"
done

# ---- the image

# archs_of: prints the architectures of the index in the layout, and of the indices that it names.  Each is looked at once,
# at most four deep, and 100 of them: a damaged layout may lead in a circle, or to many.  A digest that could be a path
# elsewhere is none, and a blob that is no file is not opened.
archs_of()
{
	files=index.json seen=' index.json ' left=100
	for _ in 1 2 3 4; do
		below=
		for file in $files; do
			{ [ -f "$layout/$file" ] && [ $left -gt 0 ]; } || continue
			left=$((left - 1))
			for found in $(jq -r '[.manifests[] | if .platform then "." + .platform.architecture else ":" + .digest end |
				select(test("^([.][a-z0-9]+|:[a-z0-9]+([+._-][a-z0-9]+)*:[a-zA-Z0-9=_-]+)$"))] | unique | .[:100][]' \
				"$layout/$file" 2>/dev/null); do
				case $found in
				.*)
					printf '%s\n' "${found#.}"
					continue
					;;
				esac
				found=${found#:}
				found=blobs/${found%%:*}/${found#*:}
				case $seen in
				*" $found "*) ;;
				*) seen="$seen$found " below="$below $found" ;;
				esac
			done
		done
		files=$below
	done
}

if [ -n "$layout" ]; then
	command -v jq >/dev/null || die $EX_OTHER 'kubernetes: --layout needs jq'
	found=$(archs_of | grep -Ex 'amd64|arm64' | sort -u | tr '\n' ' ')
	found=${found% }
	[ -n "$found" ] || die $EX_NO_FIT "$layout: not an OCI image layout that is for amd64 or arm64; make oci or make oci-all makes one"
	for arch in $archs; do
		case " $found " in
		*" $arch "*) ;;
		*) die $EX_NO_FIT "$layout: an image for $found, not for $arch; build it there, or leave out --arch" ;;
		esac
	done
	archs=${archs:-$found}
fi
if [ -z "$archs" ]; then
	case $(uname -m) in
	x86_64) archs=amd64 ;;
	aarch64) archs=arm64 ;;
	*) wrong_usage "which architecture is the image for? --arch ARCH" ;;
	esac
fi

for arch in $archs; do
	case $arch in
	amd64 | arm64) ;;
	*) die $EX_NO_FIT "--arch $arch: fiberize is for amd64 and arm64 alone; build the image for these" ;;
	esac
done

# ---- the cluster

# ask PATH: sets answer to what the API server answers, or complaint if it does not answer
ask()
{
	complaint=
	answer=$(kubectl get --raw "$1" 2>&1) || complaint=$(printf '%s\n' "$answer" | tail -n 1)
}

has_policies()
{
	ask "/apis/admissionregistration.k8s.io/$1"
	case $complaint:$answer in
	:*'"mutatingadmissionpolicies"'*) return 0 ;;
	esac
	return 1
}

look_at_cluster()
{
	command -v kubectl >/dev/null || die $EX_OTHER 'kubernetes: --cluster needs kubectl'
	ask /version
	[ -z "$complaint" ] || die $EX_NO_FIT "the cluster does not answer: $complaint"
	version=$(printf '%s' "$answer" | sed -n 's/.*"gitVersion": *"\([^"]*\)".*/\1/p')
	for one in ${api:-v1 v1beta1}; do
		if has_policies "$one"; then
			api=$one
			break
		fi
		[ "$one" != "${api:-v1beta1}" ] ||
			die $EX_NO_FIT "the cluster ($version) has no MutatingAdmissionPolicy${api:+ of $api}:" \
				"it comes with 1.36, and with 1.34 if switched on; otherwise use the two patches in $here/by-hand"
	done
	ask /api/v1/nodes
	if [ -n "$complaint" ]; then
		printf 'fiberize: the architectures of the nodes are not known: %s\n' "$complaint" >&2
		return
	fi
	others='' fitting=''
	for node in $(printf '%s' "$answer" | grep -o '"architecture": *"[a-z0-9]*"' | sed 's/.*"\(.*\)"/\1/' | sort -u); do
		case " $archs " in
		*" $node "*) fitting=1 ;;
		*) others="$others${others:+ }$node" ;;
		esac
	done
	[ -n "$fitting" ] || [ -z "$others" ] ||
		die $EX_NO_FIT "the image is for $archs, and the nodes are $others: make an image for those"
	[ -n "$mixed" ] || [ -z "$others" ] ||
		die $EX_NO_FIT "the image is for $archs, and some nodes are $others, where a pod with it would not start:" \
			"make one for all and name them by --arch, or give --mixed"
}

[ -z "$cluster" ] || look_at_cluster

# ---- the manifests

# A version may have characters that a label may not have.
version=$(printf '%s' "$release" | tr -c 'A-Za-z0-9_.-' '_')
# shellcheck disable=SC2086 # its words
list=$(printf "'%s', " $archs)
key=${selector%%=*} value=${selector#*=}

# settle NAME: prints base/NAME.yaml, changed by the options, without its head
settle()
{
	sed \
		-e "s|\"'[^']*'\" # --image\$|\"'$image'\"|" \
		-e "s|\"'[^']*'\" # --version\$|\"'$version'\"|" \
		-e "s|\['amd64'\]|[${list%, }]|" \
		-e "s|/v1 # --api\$|/${api:-v1}|" \
		${mixed:+-e 's/^\( *\): true$/\1: false/'} \
		${selector:+-e "s|{.*} # --namespace-selector\$|{\"$key\": \"$value\"}|"} \
		-e 's/ # --namespace-selector$//' \
		-e '/^#/d' "$here/base/$1.yaml"
}

text=$(
	for file in policy bindings warning; do
		echo ---
		settle $file || exit
	done
	for namespace in $namespaces; do
		echo ---
		sed -e '/^#/d' -e "s/^  name: fiberize-profiles\$/&\\n  namespace: \"$namespace\"/" "$here/profiles.yaml" || exit
	done
) || die $EX_OTHER "kubernetes: the manifests in $here cannot be read"
printf '%s\n' "$text" || die $EX_OTHER 'kubernetes: the manifests could not be written'
