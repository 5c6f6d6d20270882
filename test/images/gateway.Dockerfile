# The Gateway that the end-to-end tests send requests through (hack/tools/gateway).
FROM scratch
COPY gateway /gateway
USER 65532:65532
ENTRYPOINT ["/gateway"]
