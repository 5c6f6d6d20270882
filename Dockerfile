# The operator's image: one static binary, its charts and watches.yaml. Nothing is run while building, so that any builder on any
# architecture can make it (`make image`). CA certificates are not needed: a pod gets the cluster's authority mounted.
ARG BASE=gcr.io/distroless/static:nonroot
FROM ${BASE}

ARG VERSION=dev
LABEL org.opencontainers.image.title="Middleware Operator" \
      org.opencontainers.image.description="Runs Redis clusters, applications and jobs from custom resources" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"

# hack/image-index.sh sets that of another architecture.
ARG BINARY=bin/manager

WORKDIR /opt/operator
COPY watches.yaml ./
COPY helm-charts/ ./helm-charts/
COPY ${BINARY} /manager

USER 65532:65532
ENTRYPOINT ["/manager"]
