# The operator's image: its static binary, the one that takes backups, charts and watches.yaml. Nothing is run while building, so that any builder on any
# architecture can make it (`make image`). The operator needs no CA certificates, a pod gets the cluster's authority mounted; backups to
# a store with a public certificate do, and the base has them.
ARG BASE=gcr.io/distroless/static:nonroot
FROM ${BASE}

ARG VERSION=dev
LABEL org.opencontainers.image.title="Middleware Operator" \
      org.opencontainers.image.description="Runs Redis clusters, applications and jobs from custom resources" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"

# hack/image-index.sh sets those of another architecture.
ARG BIN=bin

WORKDIR /opt/operator
COPY watches.yaml ./
COPY helm-charts/ ./helm-charts/
COPY ${BIN}/manager ${BIN}/backup /

USER 65532:65532
ENTRYPOINT ["/manager"]
