#!/usr/bin/env bash
# How long it takes from nothing installed to the first RedisCluster that is Ready, by each way to install (local cluster only):
#   hack/with-cluster.sh hack/bench-install.sh IMAGE [ROUNDS]
# The operator's image and that of Redis are in the nodes already: pulling them is the registry's and the network's time. A table goes to
# stdout. What OLM takes, `make test-olm` logs.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
image=${1:?usage: hack/with-cluster.sh hack/bench-install.sh IMAGE [ROUNDS]} rounds=${2:-3}
[[ $LOCAL_CLUSTER == yes ]] || { echo "bench-install: removes the operator and its CRDs; only the local cluster is taken for that" >&2; exit 2; }
namespace=middleware-operator-system
helm=$(hack/tool.sh helm)
hack/deploy.sh "$image" >&2 # the images are in the nodes
hack/test-images.sh >&2

kubectl_way() { kubectl apply --server-side --force-conflicts -f build/bench-install.yaml; }
kustomize_way() { kubectl apply --server-side --force-conflicts -k build/deploy; }
helm_way() {
  "$helm" install middleware-operator deploy/middleware-operator -n $namespace --create-namespace \
    --set "image.repository=${image%:*},image.tag=${image##*:}"
}

remove() {
  kubectl delete redisclusters.redis.middleware.hc.cn cache -n default --ignore-not-found || true # there may be no such kind
  kubectl wait --for=delete pod -n default -l app.kubernetes.io/instance=cache --timeout=120s || true # nor such pods
  "$helm" uninstall middleware-operator -n $namespace --ignore-not-found
  kubectl delete -k config/default --ignore-not-found
  kubectl get crd -o name | { grep -E 'middleware.hc.cn|daocloud.io|stable.example.com|foobars.k8s.io' || true; } | xargs -r kubectl delete
} >/dev/null 2>&1

# Until the webhook answers, the cluster is refused.
ask() {
  for ((tries = 0; tries < 300; tries++)); do
    if kubectl create -f build/bench-install-cluster.yaml >/dev/null 2>build/bench-install.refused; then return; fi
    sleep 0.2
  done
  cat build/bench-install.refused >&2
  return 1
}

since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN {printf "%.1f", b - a}'; }

kubectl kustomize build/deploy >build/bench-install.yaml
cat >build/bench-install-cluster.yaml <<YAML
apiVersion: redis.middleware.hc.cn/v1alpha1
kind: RedisCluster
metadata: {name: cache, namespace: default}
spec: {version: 8.0.6, shards: 3}
YAML
echo "| way | the operator takes a RedisCluster after, s | and it is Ready after, s |"
echo "|---|---|---|"
for way in kubectl kustomize helm; do
  taken=() ready=()
  for ((i = 0; i < rounds; i++)); do
    remove
    began=$EPOCHREALTIME
    "${way}_way" >&2
    ask
    taken+=("$(since "$began")")
    kubectl wait --for=condition=Ready rediscluster/cache -n default --timeout=300s >&2
    ready+=("$(since "$began")")
  done
  echo "| $way | ${taken[*]} | ${ready[*]} |"
done
remove
hack/deploy.sh "$image" >&2
