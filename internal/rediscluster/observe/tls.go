// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/contain"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redisconf"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// certificateAge is how old may be what is known of an instance's certificate.
const certificateAge = time.Minute

// keyTrusted is the key of the trusted certificates.
const keyTrusted = "ca.crt"

// certificate is what was read of the Secrets of spec.tls, and which certificate each instance
// showed.
type certificate struct {
	trusted     string // what tls was made of: connections are kept while it stays
	tls         *redis.TLS
	fingerprint string
	notAfter    time.Time
	// pair is the certificate; offered has it while instances are shown it that ask for one.
	pair    *tls.Certificate
	offered *atomic.Pointer[tls.Certificate]
	// tries reports whether instances are shown the certificate because one did not answer without.
	tries bool
	// authorities identifies all that is trusted, since is since when that is so, as far as was seen; loads are when instances have loaded
	// their files since then, by the UIDs of their pods.
	authorities string
	since       time.Time
	loads       map[string]loads
	// names are those of the Secrets that were last found in order.
	names secretNames
	// problem says why the Secrets that the spec names cannot be used; denied, that they may
	// not even be mounted.
	problem    string
	denied     bool
	waits      bool // cert-manager is about to make what is missing
	read       byname.Reading
	generation int64
	// until is when time alone may make another certificate of it; zero: never.
	until time.Time
	shown map[string]shown // by address
}

// secretNames are those that spec.tls names; clients is what instances trust.
type secretNames struct{ own, trusted, clients string }

func namesOf(cluster *v1alpha1.RedisCluster) secretNames {
	return secretNames{own: cluster.TLSSecretName(), trusted: cluster.TLSTrustSecretName(), clients: cluster.TLSClientTrustSecretName()}
}

// freshCertificate reports whether what is known is of the present spec, and need not be read again. What a Certificate says of a Secret
// that is not in order is not watched.
func (o *Observer) freshCertificate(cluster *v1alpha1.RedisCluster, c *certificate) bool {
	return (c.problem == "" || cluster.Issuer() == nil) && c.generation == cluster.Generation &&
		(c.until.IsZero() || o.now().Before(c.until)) && o.fresh(c.read)
}

// offer has instances shown the certificate that ask for one, but only if one may be wanted: one that is shown is judged also where none
// is, by authorities that an instance may not have loaded yet, and it could not be told to. A change to Required that was taken back before
// the status told of it has left instances that want one: whoever does not answer is shown it, every other time.
func (c *certificate) offer(cluster *v1alpha1.RedisCluster) {
	switch {
	case c.tls == nil:
	case cluster.ShowsCertificate(), c.tries:
		c.offered.Store(c.pair)
	default:
		c.offered.Store(nil)
	}
}

// noteMissing notes whether an instance that runs did not answer, as one does not that requires a certificate and is shown none, or that
// is shown one which it does not trust yet.
func (c *certificate) noteMissing(s *snapshot.Snapshot) {
	c.tries = !c.tries && slices.ContainsFunc(s.Instances, func(in snapshot.Instance) bool { return in.Redis == nil && in.Waiting == "" })
}

// loads are when an instance has loaded its files: the first time and the last.
type loads struct{ first, last time.Time }

// noteLoads tells of instances for how long they have loaded their files. Whoever does not answer begins anew: nobody knows what becomes
// of its files meanwhile.
func (c *certificate) noteLoads(s *snapshot.Snapshot) {
	loads := map[string]loads{}
	for _, in := range s.Reachable() {
		if l, known := c.loads[in.UID]; known && c.problem == "" {
			loads[in.UID] = l
			in.Redis.AuthoritiesLoadedFor = l.last.Sub(l.first)
		}
	}
	c.loads = loads
}

// NoteReloaded notes that these pods of a snapshot were told to load their files. When one could not, all begin anew.
func (m *Memory) NoteReloaded(s *snapshot.Snapshot, pods []string, err error, now time.Time) {
	c := &m.certificate
	if c.loads == nil || err != nil {
		c.loads = map[string]loads{}
	}
	for _, in := range s.Reachable() {
		if err == nil && slices.Contains(pods, in.Name) {
			c.loads[in.UID] = loads{first: cmp.Or(c.loads[in.UID].first, now), last: now}
		}
	}
}

// shown is a certificate that an instance showed.
type shown struct {
	fingerprint string
	notAfter    time.Time
	at          time.Time
}

// tls reads the certificate. What cannot be used leaves what was known before, with a problem.
func (o *Observer) tls(ctx context.Context, cluster *v1alpha1.RedisCluster, m *Memory) (snapshot.TLS, error) {
	if !m.usesTLS(cluster) {
		return snapshot.TLS{Known: true}, nil
	}
	c := &m.certificate
	if c.tls == nil || !o.freshCertificate(cluster, c) {
		if err := o.lookAtCertificate(ctx, cluster, c); err != nil && c.tls == nil {
			return snapshot.TLS{}, err
		} // otherwise the API server is away, and what is known goes on to be right
	}
	c.offer(cluster)
	return snapshot.TLS{Enabled: true, Known: c.tls != nil, Problem: c.problem, Waits: c.waits, NotAfter: c.notAfter,
		Authorities: c.authorities, AuthoritiesSince: c.since}, nil
}

// lookAtCertificate reads the Secrets of spec.tls now. An error leaves all as it was.
func (o *Observer) lookAtCertificate(ctx context.Context, cluster *v1alpha1.RedisCluster, c *certificate) error {
	reads := &byname.Reads{Reader: o.Secrets}
	problem, denied, missing, err := o.readCertificate(ctx, reads, cluster, c)
	if err != nil {
		return err
	}
	waits := false
	if problem != "" && cluster.Issuer() != nil {
		says, comes, err := o.issuing(ctx, cluster)
		if err != nil {
			return err
		}
		waits = comes && missing
		if problem = problem + "; " + says; missing {
			problem = says // that there is no Secret goes without saying
		}
	}
	c.problem, c.denied, c.waits, c.read, c.generation = problem, denied, waits, reads.At(o.now()), cluster.Generation
	return nil
}

// readCertificate reads the Secrets of spec.tls, and says, with a remedy, why they cannot be
// used; denied says that one may not be mounted either, missing that there is no Secret with a certificate.
func (o *Observer) readCertificate(ctx context.Context, from client.Reader, cluster *v1alpha1.RedisCluster, c *certificate) (
	problem string, denied, missing bool, err error) {
	defer func() {
		if err == nil && denied { // nothing of it changes with time
			c.until = time.Time{}
		}
	}()
	names := namesOf(cluster)
	own, problem, err := o.tlsSecret(ctx, from, cluster, certificateField(cluster), names.own)
	if own == nil {
		return problem, true, problem == noSecret(certificateField(cluster), names.own, cluster.Namespace), err
	}
	trusted, problem, err := o.tlsSecret(ctx, from, cluster, "caSecretName", names.trusted)
	if trusted == nil {
		return problem, true, false, err
	}
	clients := trusted
	if names.clients != names.trusted {
		if clients, problem, err = o.tlsSecret(ctx, from, cluster, "clientCASecretName", names.clients); clients == nil {
			return problem, true, false, err
		}
	}
	if replaced := c.tls == nil && formerIssuer(cluster, own); replaced {
		return noSecret(certificateField(cluster), names.own, cluster.Namespace), true, true, nil
	}
	c.until = nextChange(o.now(), own.Data[corev1.TLSCertKey], trusted.Data[keyTrusted], clients.Data[keyTrusted])
	if problem = inOrder(cluster, c, own, trusted, clients, o.now()); problem == "" {
		c.names = names
	}
	return problem, false, false, nil
}

// Annotations by which cert-manager says who has signed what a Secret holds.
const annotationIssuer, annotationIssuerKind = "cert-manager.io/issuer-name", "cert-manager.io/issuer-kind"

// formerIssuer reports whether a Secret holds a certificate that is about to be replaced, with its CA, by one of the issuer that a cluster
// names, which does not use TLS yet. Instances that began with it would not know those that begin later.
func formerIssuer(cluster *v1alpha1.RedisCluster, secret *corev1.Secret) bool {
	issuer, by := cluster.Issuer(), secret.Annotations[annotationIssuer]
	return issuer != nil && cluster.Status.TLS == nil && by != "" &&
		(by != issuer.Name || cmp.Or(secret.Annotations[annotationIssuerKind], string(v1alpha1.IssuerKindIssuer)) != string(issuer.Kind))
}

// certificateField is the field of spec.tls by which the certificate of the instances is found.
func certificateField(cluster *v1alpha1.RedisCluster) string {
	if cluster.Issuer() != nil {
		return "issuerRef"
	}
	return "secretName"
}

func noSecret(field, name, namespace string) string {
	return fmt.Sprintf("spec.tls.%s: Secret %s does not exist in namespace %s: create it", field, name, namespace)
}

// inOrder notes the certificate that Secrets hold, or says why it cannot be used. What is trusted gets into the files of pods either way.
func inOrder(cluster *v1alpha1.RedisCluster, c *certificate, own, trusted, clients *corev1.Secret, now time.Time) (problem string) {
	if is := digestOf(trusted.Data[keyTrusted], clients.Data[keyTrusted]); is != c.authorities {
		c.authorities, c.since, c.loads = is, now, nil
	}
	at := certificateField(cluster)
	pair, err := tls.X509KeyPair(own.Data[corev1.TLSCertKey], own.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		return fmt.Sprintf("spec.tls.%s: Secret %s holds no certificate with its key under %s and %s (%v): correct it", at, own.Name,
			corev1.TLSCertKey, corev1.TLSPrivateKeyKey, err)
	}
	text := string(trusted.Data[keyTrusted])
	secured := c.tls
	offered := c.offered
	if text != c.trusted || secured == nil {
		if secured = redis.NewTLS([]byte(text), cluster.TLSServerName()); secured != nil {
			offered = &atomic.Pointer[tls.Certificate]{}
			secured = secured.Showing(offered.Load)
		}
	}
	if secured == nil {
		return fmt.Sprintf(
			"spec.tls: Secret %s holds no trusted certificates under %s: add them, or name the Secret that holds them in spec.tls.caSecretName",
			trusted.Name, keyTrusted)
	}
	if err := secured.Verify(pair, now, x509.ExtKeyUsageServerAuth); err != nil {
		return fmt.Sprintf("spec.tls.%s: the certificate in Secret %s is not valid for *.%s.%s.svc: %v; renew it, or correct %s",
			at, own.Name, cluster.HeadlessServiceName(), cluster.Namespace, err, keyTrusted)
	}
	if err := secured.Verify(pair, now, x509.ExtKeyUsageClientAuth); err != nil {
		return fmt.Sprintf("spec.tls.%s: the certificate in Secret %s is for servers only, and instances show it to each other as "+
			"clients (%v): have it made with both usages, server auth and client auth", at, own.Name, err)
	}
	theirs := redis.NewTLS(clients.Data[keyTrusted], cluster.TLSServerName())
	if theirs == nil || theirs.Verify(pair, now, x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth) != nil {
		return fmt.Sprintf("spec.tls.clientCASecretName: Secret %s does not trust, under %s, the certificate of the instances, who would refuse "+
			"each other: add the CA that signed it to those of clients", clients.Name, keyTrusted)
	}
	c.tls, c.trusted, c.pair, c.offered = secured, text, &pair, offered
	c.fingerprint, c.notAfter = redis.Fingerprint(pair.Leaf), pair.Leaf.NotAfter
	return ""
}

// nextChange is when the first of some certificates begins or ceases to be valid, after now; zero when none does.
func nextChange(now time.Time, texts ...[]byte) (next time.Time) {
	for _, text := range texts {
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			certificate, err := x509.ParseCertificate(block.Bytes)
			if err != nil {
				continue // what it is good for does not depend on the time
			}
			for _, at := range []time.Time{certificate.NotBefore, certificate.NotAfter.Add(time.Second)} { // it counts to the end
				if at.After(now) && (next.IsZero() || at.Before(next)) {
					next = at
				}
			}
		}
	}
	return next
}

// digestOf identifies certificates that are trusted.
func digestOf(texts ...[]byte) string {
	const digits = 16
	hash := sha256.New()
	for _, text := range texts {
		sum := sha256.Sum256(text)
		_, _ = hash.Write(sum[:]) // a hash takes everything
	}
	return hex.EncodeToString(hash.Sum(nil))[:digits]
}

// tlsSecret reads a Secret of spec.tls. It must carry a label, because its key becomes
// readable in the pods: who may write RedisClusters may not read every Secret.
func (o *Observer) tlsSecret(ctx context.Context, from client.Reader, cluster *v1alpha1.RedisCluster, field, name string) (*corev1.Secret,
	string, error) {
	var secret corev1.Secret
	err := from.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, &secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, noSecret(field, name, cluster.Namespace), nil
	case apierrors.IsForbidden(err):
		return nil, o.reader().Forbidden(cluster.Namespace), nil
	case err != nil:
		return nil, "", fmt.Errorf("read Secret %s: %w", name, err)
	case secret.Labels[v1alpha1.LabelTLS] != "true":
		return nil, fmt.Sprintf(
			"spec.tls.%s: Secret %s is not meant for this: who may label it allows it with: kubectl label secret %s --namespace %s %s=true", field,
			name, name, cluster.Namespace, v1alpha1.LabelTLS), nil
	}
	return &secret, "", nil
}

// askCertificates looks, once a minute, whether instances show the certificate of the Secret
// to new connections. The kubelet changes their files some time after the Secret.
func (o *Observer) askCertificates(ctx context.Context, m *Memory, credentials redis.Credentials, s *snapshot.Snapshot) {
	if credentials.TLS == nil {
		return
	}
	c, now := &m.certificate, o.now()
	var mu sync.Mutex
	after := map[string]shown{}
	var group errgroup.Group
	group.SetLimit(describeAtOnce)
	for _, in := range s.Reachable() {
		before, known := c.shown[in.Address()]
		if in.Way.Plain {
			if in.TLSError != "" && in.TLSStage() > redisconf.TLSPlain {
				in.Redis.OldCertificate = true // of what it shows is known that it is no good
				in.Redis.CertificateSeen = (!known || now.Sub(before.at) >= certificateAge) && c.problem == ""
				if in.Redis.CertificateSeen {
					before = shown{at: now}
				}
				mu.Lock()
				after[in.Address()] = before
				mu.Unlock()
			}
			continue
		}
		group.Go(func() error {
			return contain.Call(ctx, "look at the certificate of "+in.Name, func() error {
				fresh := known && now.Sub(before.at) < certificateAge
				if !fresh {
					certificate, err := o.Redis.Node(in.Address(), credentials).Certificate(ctx)
					if err != nil {
						return err
					}
					before = shown{fingerprint: redis.Fingerprint(certificate), notAfter: certificate.NotAfter, at: now}
				}
				mu.Lock()
				defer mu.Unlock()
				after[in.Address()] = before
				in.Redis.OldCertificate = before.fingerprint != c.fingerprint
				in.Redis.CertificateSeen = !fresh
				return nil
			})
		})
	}
	_ = group.Wait() // what one does not show is not known
	c.shown = after
	for _, in := range after {
		if !in.notAfter.IsZero() && in.notAfter.Before(s.TLS.NotAfter) {
			s.TLS.NotAfter = in.notAfter
		}
	}
}
