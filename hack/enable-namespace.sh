#!/usr/bin/env bash
# Lets the operator keep Secrets in a namespace (through hack/with-cluster.sh): hack/enable-namespace.sh NAMESPACE
set -euo pipefail
namespace=${1:?usage: hack/with-cluster.sh hack/enable-namespace.sh NAMESPACE}
kubectl create rolebinding middleware-operator -n "$namespace" --clusterrole=middleware-operator-namespace \
  --serviceaccount=middleware-operator-system:middleware-operator --dry-run=client -o yaml |
  kubectl apply --server-side -f -
