#!/usr/bin/env bash
# Fits to this project what `operator-sdk create api` and `create webhook` wrote; changes nothing where they wrote nothing.
#   hack/scaffolded.sh code         after `create webhook` (make generate, which operator-sdk runs itself)
#   hack/scaffolded.sh manifests    roles and webhooks of scaffolded kinds (make manifests)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
name=middleware-operator
shopt -s nullglob

# code: operator-sdk's templates are older than the generic webhook builder of controller-runtime 0.23.
code() {
  local file
  for file in internal/webhook/*/*/*_webhook.go; do
    sed -i -E -e 's/ctrl\.NewWebhookManagedBy\(mgr\)\.For\(([^)]*)\)/ctrl.NewWebhookManagedBy(mgr, \1)/' \
      -e '/NewWebhookManagedBy/,/Complete\(\)/s/With(Validator|Defaulter)\(/WithCustom\1(/' "$file"
  done
}

# include lists a file in a kustomization: include LIST FILE FOLDER.
include() {
  local item="- $2"
  [[ $1 == resources ]] || item="- path: $2"
  grep -qxF -- "$item" "$3/kustomization.yaml" && return
  grep -qx "$1:" "$3/kustomization.yaml" || echo "$1:" >>"$3/kustomization.yaml"
  sed -i "/^$1:\$/a $item" "$3/kustomization.yaml"
}

# chart_role: the role that the chart plugin extends becomes a part of the installation. It asks for the Secrets of every namespace,
# which this operator never holds: a namespace gives them (make enable-namespace).
chart_role() {
  grep -q '^- apiGroups:' config/rbac/role.yaml || return 0
  sed -i '/^  - secrets$/d' config/rbac/role.yaml
  include resources role.yaml config/rbac
}

# go_role: the rights in the +kubebuilder:rbac markers of scaffolded controllers, and who has them.
go_role() {
  [[ -d internal/controller ]] || return 0
  "$(hack/tool.sh controller-gen)" rbac:roleName=$name-go-kinds,fileName=go_role.yaml paths=./internal/controller/... output:rbac:dir=config/rbac
  {
    echo ---
    sed -n '/^kind: ClusterRoleBinding/,/^---$/p' config/rbac/role.yaml | sed -e '/^---$/d' -e 's/-chart-kinds$/-go-kinds/' -e '1i apiVersion: rbac.authorization.k8s.io/v1'
  } >>config/rbac/go_role.yaml
  include resources go_role.yaml config/rbac
}

# webhooks: those of the +kubebuilder:webhook markers join the operator's own configurations, whose certificate it keeps.
webhooks() {
  local packages=(internal/webhook/*/*/)
  [[ ${#packages[@]} -gt 0 ]] || return 0
  "$(hack/tool.sh controller-gen)" webhook "${packages[@]/#/paths=./}" output:stdout |
    sed -E -e '1{/^---$/d}' -e "s/^  name: (mutating|validating)-webhook-configuration$/  name: $name/" \
      -e "s/^      name: webhook-service$/      name: $name-webhook/" -e "s/^      namespace: system$/      namespace: $name-system/" >config/webhook/scaffolded.yaml
  include patches scaffolded.yaml config/webhook
  # Other layouts need these; here config/network-policy and config/components/cert-manager do it.
  sed -i '/^- allow-webhook-traffic\.yaml$/d' config/network-policy/kustomization.yaml
  rm -rf config/certmanager config/network-policy/allow-webhook-traffic.yaml config/default/manager_webhook_patch.yaml config/webhook/kustomizeconfig.yaml
}

case ${1:-} in
code) code ;;
manifests) chart_role && go_role && webhooks ;;
*) sed -n '2,4s/^# \{0,1\}//p' "$0" >&2 && exit 2 ;;
esac
