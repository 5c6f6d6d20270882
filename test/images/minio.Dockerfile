# The object store that the end-to-end tests back up to (hack/tools/minio).
FROM scratch
COPY minio /minio
USER 65532:65532
ENTRYPOINT ["/minio"]
