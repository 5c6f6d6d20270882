module middleware.hc.cn/operator/hack/tools/zstd

go 1.26

require github.com/klauspost/compress v1.20.3
