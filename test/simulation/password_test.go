// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"bufio"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// fileAge is how old the files of a pod may be: the kubelet's minute, half of one more by chance.
const fileAge = 90 * time.Second

// told is a password that clients were told, and from when on they may know it.
type told struct {
	password string
	at       time.Time
}

// guarded is a cluster with a password, its kubelet and its clients.
type guarded struct {
	*simulation
	told  []told // the password in the Secret, whenever it changed
	files []told // auth.conf, likewise
}

// newGuarded makes a formed cluster with a password.
func newGuarded(t *testing.T, seed uint64, valkey bool) *guarded {
	t.Helper()
	g := &guarded{simulation: newSimulationOf(t, seed, 2, valkey)}
	g.cluster.Spec.Auth = v1alpha1.Auth{PreviousPasswordFor: &metav1.Duration{Duration: 3 * time.Minute}}
	g.guard()
	g.look()
	g.converge()
	return g
}

// guard makes the Secret of a new cluster's password, and starts the instances with it.
func (s *simulation) guard() {
	s.t.Helper()
	if step, created := s.reconcile().(plan.CreateAuth); !created {
		s.fail("a cluster without its Secret gets %v", step)
	}
	for _, in := range s.instances {
		s.world.SetConfig(in.node, s.authFile())
		s.world.Restart(in.node, in.pod.Status.PodIP, false)
	}
}

// secret is the operator's own.
func (s *simulation) secret() *corev1.Secret {
	s.t.Helper()
	secret := &corev1.Secret{}
	if err := s.kube.Get(s.t.Context(), client.ObjectKey{Namespace: s.cluster.Namespace, Name: s.cluster.AuthSecretName()}, secret); err !=
		nil {
		s.t.Fatal(err)
	}
	return secret
}

// password is the one that clients are told.
func (s *simulation) password() string { return string(s.secret().Data[v1alpha1.SecretKeyPassword]) }

// look notes what the Secret tells clients and pods.
func (g *guarded) look() {
	secret, now := g.secret(), g.world.Now()
	for list, key := range map[*[]told]string{&g.told: v1alpha1.SecretKeyPassword, &g.files: v1alpha1.SecretKeyConfig} {
		value := string(secret.Data[key])
		if n := len(*list); n == 0 || (*list)[n-1].password != value {
			*list = append(*list, told{value, now})
		}
	}
}

// usable are the values that somebody who looked within the given time may go by.
func usable(list []told, now time.Time, within time.Duration) []string {
	values := []string{list[len(list)-1].password}
	for i := range list[:len(list)-1] {
		if !list[i+1].at.Before(now.Add(-within)) {
			values = append(values, list[i].password)
		}
	}
	return values
}

// logIn asserts that every instance lets in clients that know a password they were told not too long ago.
func (g *guarded) logIn() {
	g.t.Helper()
	for _, in := range g.instances {
		for _, password := range usable(g.told, g.world.Now(), g.cluster.PreviousPasswordFor()-time.Second) {
			conn, err := g.world.Connect(g.t.Context(), in.node.Addr())
			if err != nil {
				g.fail("dial %s: %v", in.pod.Name, err)
			}
			_, _ = fmt.Fprintf(conn, "*2\r\n$4\r\nAUTH\r\n$%d\r\n%s\r\n", len(password), password)
			answer, _ := bufio.NewReader(conn).ReadString('\n')
			_ = conn.Close() // it is of no more use
			if !strings.HasPrefix(answer, "+OK") {
				g.fail("%s refuses a password that clients were told: %s", in.pod.Name, answer)
			}
		}
	}
}

// restartContainer starts an instance again, from a file as old as it may be.
func (g *guarded) restartContainer(in *instance) {
	configs := usable(g.files, g.world.Now(), fileAge)
	g.world.SetConfig(in.node, configs[g.random.IntN(len(configs))])
	g.restart(in, true)
}

// disturb does something that may happen at any time.
func (g *guarded) disturb() {
	in := g.instances[g.random.IntN(len(g.instances))]
	switch g.random.IntN(40) {
	case 0, 1:
		g.restartContainer(in)
	case 2, 3:
		g.replaceOperator()
		g.say("another process of the operator")
	case 4, 5:
		commands := []string{"ACL SETUSER", "CONFIG SET", "ACL LIST", "CLUSTER MYID"}
		g.world.FailNext(in.node, commands[g.random.IntN(len(commands))], redistest.Failure{Kind: redistest.DropAfter})
	}
}

// runUntil lets reconciliations and time go by until the change has come to an end.
func (g *guarded) runUntilChanged(disturbed bool) {
	g.t.Helper()
	before := g.told[len(g.told)-1].password
	const most = 600
	for range most {
		g.reconcile()
		g.look()
		g.logIn()
		if now := g.told[len(g.told)-1].password; now != before && g.cluster.Status.PasswordChange == nil {
			g.converge()
			return
		}
		g.world.Run(5 * time.Second)
		if disturbed {
			g.disturb()
			g.logIn()
		}
	}
	g.fail("the password has not changed: %+v", g.cluster.Status.PasswordChange)
}

// A password changes and no client that was told one is refused, whatever happens meanwhile.
func TestPasswordChanges(t *testing.T) {
	eachSeed(t, 24, func(t *testing.T, seed uint64) {
		g := newGuarded(t, seed, seed%2 == 1)
		first := g.told[0].password
		switch seed % 3 {
		case 0: // asked for by the spec
			g.cluster.Spec.Auth.Rotate, g.cluster.Generation = "again", 2
		case 1: // written into the operator's own Secret
			secret := g.secret()
			secret.Data[v1alpha1.SecretKeyPassword] = []byte("written by hand")
			if err := g.kube.Update(t.Context(), secret); err != nil {
				t.Fatal(err)
			}
			// Whoever reads it before the operator does is told a password that nobody accepts yet.
			for string(g.secret().Data[v1alpha1.SecretKeyPassword]) != first {
				g.reconcile()
				g.world.Run(5 * time.Second)
			}
		case 2: // given by another Secret
			g.create(&corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: g.cluster.Namespace, Name: "mine", Labels: map[string]string{v1alpha1.LabelAuth: "true"}},
				Data:       map[string][]byte{v1alpha1.SecretKeyPassword: []byte("given \n\"by\" another")}})
			g.cluster.Spec.Auth.SecretName, g.cluster.Generation = "mine", 2
		}
		g.runUntilChanged(seed >= 6)
		want := map[uint64]string{1: "written by hand", 2: "given \n\"by\" another"}[seed%3]
		last := g.told[len(g.told)-1].password
		if want != "" && last != want || last == first || len(g.told) != 2 {
			g.fail("clients were told %d passwords, the last is %q", len(g.told), last)
		}
		for _, in := range g.instances {
			access, err := g.loop.Observer.Redis.Node(in.node.Addr(), g.memory.Credentials(g.cluster)).Access(t.Context())
			if err != nil || len(access.Passwords) != 1 {
				g.fail("%s accepts %d passwords at the end (%v)", in.pod.Name, len(access.Passwords), err)
			}
		}
		g.wantHealthy()
	})
}
