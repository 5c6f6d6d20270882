# The catalog's image: opm, the file-based catalog, and the cache from which it serves at once. The context is what hack/catalog.sh
# made, the cache included, so nothing is run while building.
ARG BASE=quay.io/operator-framework/opm:v1.72.0
FROM ${BASE}

ENTRYPOINT ["/bin/opm"]
CMD ["serve", "/configs", "--cache-dir=/tmp/cache"]

COPY configs /configs
# The user of the base image, and its group for clusters that choose another user.
COPY --chown=1001:0 cache /tmp/cache

LABEL operators.operatorframework.io.index.configs.v1=/configs
