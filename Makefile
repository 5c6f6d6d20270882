# The Middleware Operator. `make` alone prints what can be made.

VERSION ?= 0.1.0
# Image of the operator. Without KUBECONFIG it is built here and loaded into the cluster; with it, it must be pullable there.
IMG ?= middleware.hc.cn/operator:$(VERSION)
# The cluster to use; empty means the local one, which is brought up when needed (root on Linux).
KUBECONFIG ?=

# What `make build` writes, and the architectures of `make image-index`.
BIN ?= bin
ARCHITECTURES ?= amd64 arm64

COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X middleware.hc.cn/operator/internal/manager.Version=$(VERSION) -X middleware.hc.cn/operator/internal/manager.Commit=$(COMMIT) \
  -X middleware.hc.cn/operator/internal/plugin.Version=$(VERSION)

# The machine's own Go settings must not change what is built. (An empty GOFLAGS would fall back to what `go env -w` wrote.)
# With -trimpath, what one checkout has compiled serves another.
export GOFLAGS := -buildvcs=false -trimpath
export GOWORK := off
export KUBECONFIG
# all: tests of real servers run on every engine, also those that take long.
export E2E
# hack/image.sh builds the same binary.
export LDFLAGS VERSION

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

# Packages whose tests need nothing. Those with goroutines of their own are tested with the race detector, the rest without,
# because the detector compiles every dependency a second time. AREA leaves one room of the house: hack/packages.sh.
RACE_PACKAGES := ./internal/redis/... ./internal/apply/... ./internal/rediscluster/act ./internal/rediscluster/observe ./internal/fleet ./internal/shards
UNIT_PACKAGES = $(filter-out $(shell go list $(RACE_PACKAGES)),$(shell hack/packages.sh unit))

.PHONY: help
help: ## print this
	@awk 'BEGIN {FS = ":.*## "} /^##@ / {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-18s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))
	@echo
	@echo "Variables: IMG, VERSION, KUBECONFIG (a cluster of your own), NS (enable-namespace), RUN (test-*: a test's name), AREA (check)"

##@ See it run

.PHONY: demo
demo: ## a cluster (KUBECONFIG, else kind or k3d, else the local one), operator and all five kinds; ends with a table
	hack/demo-cluster.sh hack/demo.sh "$(IMG)"

.PHONY: cluster-up cluster-down cluster-status
cluster-up: ## bring up the local cluster: three nodes in three zones
	hack/cluster.sh up
cluster-down: ## stop the local cluster and put the machine back as it was
	hack/cluster.sh down
cluster-status: ## what of the local cluster runs
	hack/cluster.sh status

##@ Test

.PHONY: check
check: ## before a commit: formats, lint and unit tests, in a minute; AREA=app for one room
	hack/check.sh "$(AREA)"

# On two quiet cores and with warm caches `make test` has 25 minutes: what grows past that moves to `make test-all` or is made faster.
# Servers keep their own time: a layer that has any is beside nothing that keeps the processors busy.
LAYERS = --beside "lint test-cluster-unit" prepare test-unit test-apiserver test-engine test-e2e
.PHONY: test test-all
# INCONCLUSIVE is a file that takes a line for each test which a machine that stalled left inconclusive; where there is none,
# such a test fails.
test: ## everything that a change must pass; ends with times and what was inconclusive
	INCONCLUSIVE=$(CURDIR)/build/inconclusive hack/test.sh $(LAYERS)
test-all: ## that, every engine in every end-to-end test, the page of the plugin in a browser, and the operator on a real OLM
	INCONCLUSIVE= E2E=all hack/test.sh $(LAYERS) test-browser test-olm

.PHONY: prepare
prepare: deploy ## what the tests need that takes long on a new machine: cluster, operator, gateway, servers
	hack/with-cluster.sh hack/test-images.sh
	hack/engines.sh >/dev/null
	for tool in minio fake-gcs-server age zstd prometheus; do hack/tool.sh $$tool >/dev/null; done

# The linter vets the code, and nobody debugs these binaries: linking a hundred of them takes two thirds of the time without DWARF. A
# package that gets little of the processors beside other tests has taken 45 minutes.
GO_TEST = go test -vet=off -timeout 80m -ldflags='-s -w'
.PHONY: test-unit
test-unit: ## tests that need nothing
	$(GO_TEST) $(RUN_FLAG) $(UNIT_PACKAGES)
	$(GO_TEST) -race $(RUN_FLAG) $(RACE_PACKAGES)

.PHONY: test-cluster-unit
test-cluster-unit: ## tests of the local cluster's own code
	cd test/cluster && go test ./...

APISERVER_TIMEOUT ?= 80m
.PHONY: test-apiserver
test-apiserver: ## tests against a real API server and etcd
	hack/tool.sh helm-operator >/dev/null; hack/tool.sh helm >/dev/null; hack/tool.sh gateway >/dev/null # what operators are taken over from, what charts are compared with, what traffic goes through
	for tool in operator-sdk controller-gen kustomize "code-generator client-gen"; do hack/tool.sh $$tool >/dev/null; done # what adds kinds to a copy of the checkout
	assets=$$(hack/envtest.sh); KUBEBUILDER_ASSETS=$$assets $(GO_TEST) -count=1 -p 4 -timeout $(APISERVER_TIMEOUT) $(RUN_FLAG) ./test/apiserver/...

.PHONY: test-engine
test-engine: build-backup ## tests against real Redis and Valkey processes, and real object stores (STORES=all: also Azure's; CLIENTS=all: also clients of other languages, see docs/external-access.md; both need Node.js)
	engines=$$(hack/engines.sh); minio=$$(hack/tool.sh minio); gcs=$$(hack/tool.sh fake-gcs-server); age=$$(hack/tool.sh age); zstd=$$(hack/tool.sh zstd); \
	  azurite=; if [ "$(STORES)" = all ]; then azurite=$$(hack/azurite.sh) || exit 1; fi; \
	  clients=; if [ "$(CLIENTS)" = all ]; then clients=$$(hack/npm.sh redis-clients) || exit 1; fi; \
	  NODE_CLIENTS=$$clients ENGINES=$$engines MINIO=$$minio FAKE_GCS=$$gcs AZURITE=$$azurite AGE=$$age ZSTD=$$zstd BACKUP=$(CURDIR)/bin/backup \
	  $(GO_TEST) -count=1 -timeout 45m $(RUN_FLAG) ./test/engine/... ./internal/archive

.PHONY: test-e2e
test-e2e: ## the operator on a real cluster, end to end
	hack/with-cluster.sh hack/deploy.sh "$(IMG)"
	hack/with-cluster.sh hack/test-images.sh
	hack/with-cluster.sh $(GO_TEST) -count=1 -timeout 120m -parallel 5 $(RUN_FLAG) ./test/e2e/...

.PHONY: test-browser
test-browser: ## the page of `kubectl middleware web`, and the documentation site, in Chromium, which is installed on Debian as root (in `test-all`); UPDATE=1 takes its pictures anew
	chromium=$$(hack/browser.sh); CHROMIUM=$$chromium $(GO_TEST) -count=1 -timeout 15m $(RUN_FLAG) ./test/browser $(if $(UPDATE),-args -update)

.PHONY: test-olm
test-olm: ## the bundle on a real OLM: install modes, upgrade under load, run bundle, scorecard (root on Linux; in `test-all`)
	hack/test-olm.sh "$(RUN)"

# For each target, of which there are some twenty. Not in `make test`, where their seeds run.
FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME; what fails is written to testdata/fuzz
	hack/fuzz.sh "$(FUZZTIME)"

# Parts of it: simulation, transitions, apiserver, faults, backups, fuzz, mutation; empty means all of them.
PARTS ?=
.PHONY: proof
proof: ## everything that searches for mistakes rather than check a change: hours; tables in build/proof
	hack/proof.sh $(PARTS)

# Folders, such as internal/apply; empty means all that hack/mutate knows. Not in `make test`: all of them take hours.
PACKAGES ?=
.PHONY: mutation
mutation: ## which changes of the code would no test notice? PACKAGES="internal/apply" narrows it; MUTATE="--help" tells more
	go run ./hack/mutate $(MUTATE) $(PACKAGES)

.PHONY: bench-redis
bench-redis: ## how fast RedisClusters scale, against redis-cli and the engine itself; BENCH="--measure rollouts,failovers" measures those; --help tells more
	hack/with-cluster.sh hack/deploy.sh "$(IMG)"
	hack/with-cluster.sh hack/bench-redis.sh $(BENCH)

.PHONY: bench-neighbours
bench-neighbours: ## what neighbours that mean harm cost an honest RedisCluster (local cluster only)
	hack/with-cluster.sh hack/deploy.sh "$(IMG)"
	hack/with-cluster.sh hack/bench-neighbours.sh $(BENCH)

.PHONY: bench-helm
bench-helm: ## chart kinds against the real helm-operator on one API server; BENCH="--crs 50 --rounds 1 --idle 0 --drifts 0 --crashes 0" makes it small
	hack/bench-helm.sh $(BENCH)

.PHONY: bench-scale
bench-scale: ## what the operator costs with many RedisClusters, whose pods and Redis are simulated; BENCH="--clusters 10,100,1000" for more
	hack/bench-scale.sh $(BENCH)

.PHONY: bench-install
bench-install: ## from nothing to the first RedisCluster that is Ready, by each way to install (local cluster only, which loses its operator meanwhile)
	hack/with-cluster.sh hack/bench-install.sh "$(IMG)"

RUN_FLAG = $(if $(RUN),-run '$(RUN)' -v)

##@ Change it

.PHONY: update
update: ## all that is generated or compared with, in its order: code, CRDs, references, bundle, chart, golden files
	$(MAKE) -j1 generate manifests docs-api bundle chart
	hack/golden.sh

.PHONY: generate
generate: ## deep-copy functions, clientset, listers and informers from api/
	"$$(hack/tool.sh controller-gen)" object:headerFile=hack/boilerplate.go.txt paths=./api/...
	hack/generate-clients.sh
	hack/scaffolded.sh code

.PHONY: manifests
manifests: ## CRDs from api/; roles and webhooks of scaffolded kinds
	"$$(hack/tool.sh controller-gen)" crd paths=./api/... output:crd:dir=config/crd/bases
	sed -i 's/(\[eE\](\\+|-)?((\[0-9\]+(\\.\[0-9\]\*)?)|(\\.\[0-9\]+)))/([eE](\\+|-)?[0-9]{1,2})/' config/crd/bases/*.yaml # 1e1000000000 as a quantity takes for ever to decode
	hack/scaffolded.sh manifests

.PHONY: docs-api
docs-api: ## API reference from api/
	"$$(hack/tool.sh crd-ref-docs)" --config=hack/crd-ref-docs.yaml --source-path=api --log-level=ERROR --renderer=markdown --output-path=docs/reference/api.md

# RELEASES=all: a folder for each release, too.
RELEASES ?=
.PHONY: site
site: ## build/site: README.md and docs/ as a site, with a search; look at it with any web server
	hack/site.sh $(if $(RELEASES),releases)

.PHONY: chart
chart: ## deploy/middleware-operator: the operator's Helm chart, from config/
	hack/chart.sh "$(VERSION)"

.PHONY: dashboards
dashboards: ## config/grafana: Grafana's dashboards, from hack/dashboards
	go run ./hack/dashboards config/grafana

.PHONY: lint
lint: ## golangci-lint: who may import what, exhaustive switches, and the usual
	"$$(hack/tool.sh golangci-lint)" run

.PHONY: verify
verify: ## fail if generated files, formats or modules are not up to date
	hack/verify.sh

.PHONY: validate
validate: build ## check watches.yaml, charts, CRDs and samples as they are shipped
	bin/manager validate --strict --crds=config/crd/bases --sample=config/samples

##@ Build and run

.PHONY: build
build: build-backup ## bin/manager and bin/backup, static
	CGO_ENABLED=0 go build -ldflags "$(LDFLAGS)" -o $(BIN)/manager ./cmd

.PHONY: build-backup
build-backup: ## bin/backup, static: what takes backups (docs/backup.md)
	CGO_ENABLED=0 go build -ldflags "$(LDFLAGS)" -o $(BIN)/backup ./cmd/backup

.PHONY: plugin
plugin: ## bin/kubectl-middleware, static: the plugin of kubectl (docs/plugin.md)
	CGO_ENABLED=0 go build -ldflags "$(LDFLAGS)" -o $(BIN)/kubectl-middleware ./cmd/kubectl-middleware

.PHONY: image image-index
image: ## the operator's image as an archive; prints its path
	@hack/image.sh "$(IMG)"
image-index: ## the operator's image for every architecture, as one OCI archive; prints its path (ARCHITECTURES)
	@hack/image-index.sh "$(IMG)" $(ARCHITECTURES)

.PHONY: run
run: build ## run the operator outside of the cluster (charts, watches.yaml and CRDs of this checkout)
	hack/with-cluster.sh hack/run.sh

.PHONY: install uninstall
install: ## install the CRDs
	hack/with-cluster.sh kubectl apply --server-side --force-conflicts -k config/crd
uninstall: ## remove the CRDs and WITH THEM every RedisCluster, App, Application, CronTab and FooBar (SURE=yes)
	@[[ "$(SURE)" == yes ]] || { echo "This deletes every custom resource of the five kinds. If that is meant: make uninstall SURE=yes"; exit 1; }
	hack/with-cluster.sh kubectl delete --ignore-not-found -k config/crd

.PHONY: deploy undeploy
deploy: ## install CRDs and operator, and wait until it is ready
	hack/with-cluster.sh hack/deploy.sh "$(IMG)"
undeploy: ## remove the operator; CRDs and custom resources stay
	hack/with-cluster.sh kubectl delete --ignore-not-found -k config/operator

.PHONY: enable-namespace
enable-namespace: ## let the operator keep Secrets (passwords, release records) in namespace NS
	@[[ -n "$(NS)" ]] || { echo "Which namespace? make enable-namespace NS=shop"; exit 1; }
	hack/with-cluster.sh hack/enable-namespace.sh "$(NS)"

.PHONY: build-installer
build-installer: ## dist/install.yaml: everything in one file
	@hack/with-kubectl.sh hack/overlay.sh "$(IMG)"
	@mkdir -p dist
	hack/with-kubectl.sh kubectl kustomize build/deploy > dist/install.yaml
	@echo "wrote dist/install.yaml: kubectl apply --server-side -f dist/install.yaml"

##@ OLM

# Images and folders of what OLM installs from. BUNDLE holds bundle/ and bundle.Dockerfile: the checkout's, or the one that
# `make bundle-pin` wrote (BUNDLE=build/pinned).
BUNDLE ?= .
BUNDLE_IMG ?= middleware.hc.cn/operator-bundle:v$(VERSION)
CATALOG_IMG ?= middleware.hc.cn/operator-catalog:v$(VERSION)
SCORECARD_IMG ?= middleware.hc.cn/operator-scorecard:v$(VERSION)
# What the catalog's image is built on: a name, or docker-archive:FILE where only buildah works.
OPM_IMG ?= quay.io/operator-framework/opm:v1.72.0
# Prints the digest of the image that is appended to it.
RESOLVER ?= $$(hack/tool.sh crane) digest

.PHONY: bundle bundle-validate bundle-pin bundle-build
bundle: ## bundle/ from api/ and config/manifests
	hack/bundle.sh "$(VERSION)" "$(IMG)"
bundle-validate: ## every validator of operator-sdk that applies; a warning fails
	hack/bundle-validate.sh "$(BUNDLE)/bundle"
bundle-pin: ## build/pinned: the bundle with every image by digest (RESOLVER)
	rm -rf build/pinned && mkdir -p build/pinned
	cp -r bundle bundle.Dockerfile build/pinned
	go run ./hack/olm pin --bundle=build/pinned/bundle --resolver="$(RESOLVER)"
bundle-build: ## the bundle's image as an archive; prints its path (BUNDLE, BUNDLE_IMG)
	@hack/build-image.sh "$(BUNDLE_IMG)" "$(BUNDLE)/bundle.Dockerfile" "$(BUNDLE)" -- bundle

.PHONY: catalog catalog-build
catalog: ## build/catalog: the file-based catalog of catalog/semver.yaml
	hack/catalog.sh catalog/semver.yaml build/catalog "$(BUNDLE_IMG)=$(BUNDLE)/bundle"
catalog-build: catalog ## the catalog's image as an archive; prints its path (CATALOG_IMG, OPM_IMG)
	@hack/build-image.sh "$(CATALOG_IMG)" catalog/catalog.Dockerfile build/catalog "BASE=$(OPM_IMG)" -- configs cache

.PHONY: scorecard-build
scorecard-build: ## the image of our scorecard tests as an archive; prints its path (SCORECARD_IMG)
	@hack/scorecard-image.sh "$(SCORECARD_IMG)"

.PHONY: operatorhub
operatorhub: ## dist/operatorhub: what a pull request to OperatorHub's repository holds (BUNDLE, REVIEWERS)
	REVIEWERS="$(REVIEWERS)" hack/operatorhub.sh "$(VERSION)" "$(BUNDLE)/bundle" "$(BUNDLE_IMG)"

##@ Release

# What a release consists of, in dist/release. DIGEST is that of the image in its registry, once it is there.
DIGEST ?=
.PHONY: release release-snapshot
release: ## dist/release: programs, image, chart, manifests, bundle, SBOMs, notes, checksums; CHANGELOG.md must know VERSION
	hack/release.sh "$(VERSION)" "$(IMG)" "$(DIGEST)"
release-snapshot: ## the same of what is unreleased; nothing is signed or published
	SNAPSHOT=yes hack/release.sh "$(VERSION)" "$(IMG)" "$(DIGEST)"

.PHONY: release-crds
release-crds: ## config/crd/released/VERSION: the CRDs that the next version is compared with
	go run ./hack/olm release --output=config/crd/released/$(VERSION)

.PHONY: release-state
release-state: ## what this version leaves in a cluster, for the tests of later ones: test/apiserver/*/testdata/released/VERSION.yaml
	assets=$$(hack/envtest.sh); KUBEBUILDER_ASSETS=$$assets go test -count=1 -run '^TestUpgradeFromReleases$$' ./test/apiserver/rediscluster ./test/apiserver/crash -record $(VERSION)

.PHONY: clean
clean: ## remove what was built in this checkout
	rm -rf bin build dist
