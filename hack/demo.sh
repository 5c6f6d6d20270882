#!/usr/bin/env bash
# The demonstration (make demo): installs the operator, applies a sample of each of the five kinds, waits until all are Ready, uses
# them, and says how to look further. Run it again as often as you like; what is there already is kept.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
image=${1:?usage: hack/demo-cluster.sh hack/demo.sh IMAGE}

bold=$(tput bold 2>/dev/null || true) plain=$(tput sgr0 2>/dev/null || true)
step() { printf '\n%s[%3d s] %s%s\n' "$bold" "$SECONDS" "$*" "$plain"; }

samples=(
  config/samples/redis_v1alpha1_rediscluster.yaml # the source document's; it is paused, so it shows a draft
  config/samples/redis_v1alpha1_rediscluster_full.yaml
  config/samples/appcontroller_v1alpha1_app.yaml
  config/samples/controller_v1_application.yaml
  config/samples/stable_v1beta1_crontab.yaml
  config/samples/k8s_v1_foobar.yaml
)
# named KIND FILE prints the name of the sample in a file.
named() { kubectl create --dry-run=client -f "$1" -o jsonpath='{.metadata.name}'; }

# ready RESOURCE NAME waits for the condition Ready and tells every few seconds what it waits for.
ready() {
  local started=$SECONDS message
  until [[ $(condition "$1" "$2" status) == True ]]; do
    if ((SECONDS - started > 300)); then
      kubectl get "$1" "$2" -o yaml | sed -n '/^status:/,$p' >&2
      echo "$1/$2 is not Ready after 300 s; the operator's log: kubectl -n middleware-operator-system logs deployment/middleware-operator" >&2
      return 1
    fi
    message=$(condition "$1" "$2" message)
    printf '  %3d s  %s/%s: %s\n' $((SECONDS - started)) "$1" "$2" "${message:-waiting for the operator to look at it}"
    sleep 2
  done
  printf '  %s/%s is Ready after %d s\n' "$1" "$2" $((SECONDS - started))
}
condition() { kubectl get "$1" "$2" -o jsonpath="{.status.conditions[?(@.type==\"Ready\")].$3}" 2>/dev/null || true; }

# inside NAME IMAGE COMMAND... runs a command in a pod of the cluster and prints what it says.
inside() {
  local name=demo-$1 image=$2
  shift 2
  kubectl delete pod "$name" --ignore-not-found --wait --grace-period=1 >/dev/null
  kubectl run "$name" --image="$image" --restart=Never --labels=app.kubernetes.io/part-of=demo \
    --override-type=strategic --overrides='{"spec":{"terminationGracePeriodSeconds":0,"automountServiceAccountToken":false}}' \
    --env="REDISCLI_AUTH=${password:-}" --command -- "$@" >/dev/null
  kubectl wait pod "$name" --for=jsonpath='{.status.phase}'=Succeeded --timeout=60s >/dev/null ||
    { kubectl logs "$name" >&2; kubectl describe pod "$name" | tail -n 5 >&2; return 1; }
  kubectl logs "$name"
  kubectl delete pod "$name" --wait=false >/dev/null
}

step "Installing the operator"
hack/deploy.sh "$image"

step "Applying the samples"
for sample in "${samples[@]}"; do
  kubectl apply --server-side --force-conflicts -f "$sample"
done
redis=$(named config/samples/redis_v1alpha1_rediscluster_full.yaml)
app=$(named config/samples/appcontroller_v1alpha1_app.yaml)
application=$(named config/samples/controller_v1_application.yaml)
crontab=$(named config/samples/stable_v1beta1_crontab.yaml)
foobar=$(named config/samples/k8s_v1_foobar.yaml)

step "Waiting until all five kinds are Ready"
ready applications "$application"
ready apps.appcontroller.middleware.hc.cn "$app"
ready crontabs "$crontab"
ready foobars "$foobar"
ready redisclusters "$redis"

step "Redis: SET and GET through the Service, as any client in the cluster"
redis_image=$(kubectl get redisclusters "$redis" -o jsonpath='{.spec.repository}:{.spec.version}')
password=$(kubectl get secret "$redis-auth" -o jsonpath='{.data.password}' 2>/dev/null | base64 -d || true)
inside redis "$redis_image" redis-cli -c -h "$redis" SET greeting "hello from the Middleware Operator"
inside redis "$redis_image" redis-cli -c -h "$redis" GET greeting
password=

step "App: an HTTP request through its Service"
inside http docker.io/library/busybox:1.36 wget -q -O - "http://$app/" | head -n 5

step "FooBar: what its Job printed"
kubectl logs "job/$(kubectl get jobs -l "app.kubernetes.io/instance=$foobar" -o jsonpath='{.items[0].metadata.name}')"

step "The five kinds"
for kind in redisclusters apps.appcontroller.middleware.hc.cn applications crontabs foobars; do
  kubectl get "$kind" --all-namespaces
  echo
done

cat <<TEXT
${bold}Done in $SECONDS s.${plain} Look further:

  export KUBECONFIG=$KUBECONFIG
  kubectl get middleware -A                     # all five kinds
  kubectl get rec $redis -o yaml                # phase, conditions, nodes, plan
  kubectl delete pod -l app.kubernetes.io/instance=$redis   # kill every instance, and watch it heal:
  kubectl get rec -w
  kubectl -n middleware-operator-system logs deployment/middleware-operator -f

TEXT
if [[ -n ${CLUSTER_DOWN:-} ]]; then
  echo "Stop it all: $CLUSTER_DOWN"
else
  echo "Remove the samples: kubectl delete -k config/samples; the operator: make undeploy"
fi
