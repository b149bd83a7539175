#!/bin/bash
# SPDX-License-Identifier: MIT
#
# tests/scripts/kubernetes/pods_page.sh - the page for somebody new, scripts/kubernetes/PODS.md: each of its commands is typed,
# in its order.  What is applied is rendered by kubectl, compared with what "fiberize kubernetes" prints, and not sent:
# a program stands for what needs a cluster or a registry.

# shellcheck source=tests/lib/judge.inc
. "$(dirname "$0")/../../lib/judge.inc"
# shellcheck source=tests/lib/cluster.inc
. "$(dirname "$0")/../../lib/cluster.inc"
# shellcheck source=tests/lib/typed.inc
. "$(dirname "$0")/../../lib/typed.inc"
need kubectl jq
kubectl kustomize --help 2>&1 | grep -q -- --load-restrictor ||
	{ skip 'the page' 'kubectl is older than 1.21, and knows no "patches" of kustomize'; finish; }

typed "$root/scripts/kubernetes/PODS.md" "$work/page"
commands=$(find "$work/page" -name '*.command' | wc -l)
yes 'the page has commands' [ "$commands" -ge 13 ]
mkdir "$work/bin" "$work/empty"
ln -s "$fiberize" "$work/bin"
cat >"$work/bin/kubectl" <<TYPED
#!/bin/sh
case " \$* " in
*' --raw '*) exec "$(command -v kubectl)" "\$@" ;;
' apply -k '*) exec "$(command -v kubectl)" kustomize "\$3" ;;
esac
echo "kubectl \$*" >>"$work/asked"
TYPED
for name in make skopeo; do
	printf '#!/bin/sh\necho "%s $*" >>"%s/asked"\n' $name "$work" >"$work/bin/$name"
done
chmod 755 "$work/bin"/*
version=$(sed -n 's/^VERSION := //p' "$root/Makefile")
cluster v1.36.1 v1 amd64 arm64
cd "$work/empty" || exit 1
for command in "$work"/page/*.command; do
	name=${command%.command}
	text=$(head -n 1 "$command")
	sed -i "s#/usr/libexec/fiberize#$build/libexec#g" "$command"
	run env PATH="$work/bin:$PATH" sh "$command"
	same "$text" '0:' "$code:$err"
	[[ $text != 'kubectl apply -k '* ]] || cp "$work/out" "$work/applied.${text##* }"
done
same 'what the cluster and the registry were asked' "make oci-all
skopeo copy --all oci:build/oci:$version docker://registry.example/fiberize:$version
kubectl -n shop rollout restart deployment server
kubectl -n shop get pods -L fiberize/version
kubectl -n shop logs deployment/server -c fiberize" "$(cat "$work/asked")"

json <"$work/empty/fiberize.yaml" >"$work/printed"
same 'printed: with the image and the profiles' "'registry.example/fiberize:$version' shop" "$(jq -r '
	(.spec.variables[]? | select(.name == "image").expression), select(.kind == "ConfigMap").metadata.namespace' "$work/printed" | sort | xargs -d '\n')"
same 'by kustomize: as printed' '' "$(diff <(json <"$work/applied.." | jq .) \
	<(jq 'select(.kind != "ConfigMap")' "$work/printed"))"
json <"$work/applied.shop" >"$work/shop"
same 'the service: its objects' 'ConfigMap code ConfigMap fiberize-profiles Deployment server Namespace shop' \
	"$(jq -r '"\(.kind) \(.metadata.name | sub("^code-.*"; "code"))"' "$work/shop" | xargs)"
same 'the service: the profiles as printed' '' "$(diff <(jq 'select(.metadata.name == "fiberize-profiles")' "$work/shop") \
	<(jq 'select(.kind == "ConfigMap")' "$work/printed"))"
same 'the namespace has the label that the policy wants' \
	"$(jq -c '.spec.matchResources.namespaceSelector.matchLabels // empty' "$work/printed" | sort -u)" \
	"$(jq -c 'select(.kind == "Namespace").metadata.labels' "$work/shop")"
same 'the pods have the program' 1 "$(jq -r 'select(.kind == "ConfigMap") | select(.data["server.py"]).metadata.name' "$work/shop" |
	grep -cxFf <(jq -r 'select(.kind == "Deployment").spec.template.spec.volumes[].configMap.name' "$work/shop"))"
yes 'the program is python' "$python" -m py_compile "$work/empty/shop/server.py"
finish
