// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package redisconf

// Paths of the certificate in the Redis container.
const (
	TLSDir             = "/etc/redis/tls"
	TLSCertificatePath = TLSDir + "/tls.crt"
	tlsKeyPath         = TLSDir + "/tls.key"
	tlsTrustedPath     = TLSDir + "/ca.crt"
)

// tlsSettings make an instance encrypt everything, with no port beside. Certificates of
// clients are checked and not asked for: the password is what lets them in. Clients are
// redirected to DNS names, because those are what the certificate holds.
var tlsSettings = []Setting{
	{Name: "port", Args: []string{"0"}},
	{Name: "tls-port", Args: []string{ownedSettings["port"]}},
	{Name: "tls-cluster", Args: []string{"yes"}},
	{Name: "tls-replication", Args: []string{"yes"}},
	{Name: "tls-auth-clients", Args: []string{"optional"}},
	{Name: "tls-cert-file", Args: []string{TLSCertificatePath}},
	{Name: "tls-key-file", Args: []string{tlsKeyPath}},
	{Name: "tls-ca-cert-file", Args: []string{tlsTrustedPath}},
	{Name: "cluster-preferred-endpoint-type", Args: []string{"hostname"}},
}
