// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package act

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
)

// everyStep is what an actor may be asked for, each with something to do.
var everyStep = []func(b *bench) plan.Step{
	func(b *bench) plan.Step {
		return plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[2], Slots: slots.Of(16383)}}}
	},
	func(b *bench) plan.Step {
		return plan.Meet{Meetings: []plan.Meeting{{From: b.targets[0], To: b.targets[1]}}}
	},
	func(b *bench) plan.Step { return plan.SetNodeTimeout{On: b.targets[:1], Timeout: time.Second} },
	func(b *bench) plan.Step {
		return plan.Replicate{Replications: []plan.Replication{{Replica: b.targets[2], MasterID: b.targets[0].NodeID}}}
	},
	func(b *bench) plan.Step {
		return plan.Forget{On: b.targets[:1], NodeIDs: []string{b.targets[2].NodeID}}
	},
	func(b *bench) plan.Step { return plan.BumpEpoch{On: b.targets[0]} },
	func(b *bench) plan.Step { return plan.CopyFunctions{From: b.targets[0], To: b.targets[2:]} },
	func(b *bench) plan.Step {
		return plan.StabilizeSlots{Stabilizations: []plan.Stabilization{{On: b.targets[0], Slots: slots.Of(7)}}}
	},
	func(b *bench) plan.Step {
		return plan.RepairSlots{Moves: []plan.Move{{From: b.targets[0], To: b.targets[2], Slots: slots.Of(7)}}}
	},
	func(b *bench) plan.Step { return plan.RewriteAOF{On: b.targets[0]} },
	func(b *bench) plan.Step { return plan.RewriteAOF{On: b.targets[0], Reopen: true} },
	func(b *bench) plan.Step {
		return plan.ReclaimSlots{Claims: []plan.Claim{{On: b.targets[2], Slots: slots.Of(16383)}}}
	},
	func(b *bench) plan.Step {
		return plan.SetAccess{On: b.targets[:1]}
	},
	func(b *bench) plan.Step { return plan.CreateAuth{} },
	func(b *bench) plan.Step { return plan.AddFinalizer{} },
	func(b *bench) plan.Step { return plan.AddToEndpoints{Pods: []string{"c-0-0"}} },
	func(b *bench) plan.Step { return plan.RemoveFromEndpoints{Pods: []string{"c-0-0"}} },
	func(b *bench) plan.Step { return plan.Restart{Pod: "c-0-0", UID: "pod"} },
	func(b *bench) plan.Step {
		return plan.Recreate{Pod: "c-0-0", UID: "pod", Claim: snapshot.Claim{Name: "data-c-0-0", UID: "claim"}}
	},
	func(b *bench) plan.Step { return plan.ExpandPVCs{Claims: []string{"data-c-0-0"}, Bytes: 2 << 30} },
	func(b *bench) plan.Step { return plan.RemoveShards{Shards: map[int]string{0: "999"}} },
	func(b *bench) plan.Step { return plan.DeleteChildren{} },
	func(b *bench) plan.Step { return plan.OrphanChildren{} },
	func(b *bench) plan.Step {
		b.subject.Cluster.Annotations = map[string]string{v1alpha1.AnnotationSwitchover: "c-0-0"}
		return plan.EndSwitchover{Instance: "c-0-0"}
	},
}

// world3 is a bench with what the steps are about: three masters, a pod, a claim and a StatefulSet.
func world3(t *testing.T, fails interceptor.Funcs) *bench {
	t.Helper()
	owner := []metav1.OwnerReference{{APIVersion: "v1", Kind: "RedisCluster", Name: "c", UID: "uid", Controller: ptr.To(true)}}
	labels := map[string]string{v1alpha1.LabelCluster: "c"}
	b := newBench(t, fails,
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-0", UID: "pod"}},
		&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "data-c-0-0", UID: "claim"},
			Spec: corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}}},
		&appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0", UID: "set", OwnerReferences: owner, Labels: labels}})
	b.subject.Access, b.subject.Credentials = &access.State{Password: "one", Exporter: "two", Backup: "b"}, redis.Credentials{Password: "one"}
	for _, step := range []plan.Step{
		plan.AssignSlots{Assignments: []plan.Assignment{{To: b.targets[0], Slots: slots.Range(0, 9000)},
			{To: b.targets[1], Slots: slots.Range(9001, 16382)}}},
		plan.Meet{Meetings: []plan.Meeting{{From: b.targets[0], To: b.targets[1]}, {From: b.targets[0], To: b.targets[2]}}},
	} {
		b.must(step)
	}
	b.world.Run(2 * time.Second)
	return b
}

// Whichever command of a step gets no answer, the step is not said to be done.
func TestEveryLostCommandIsTold(t *testing.T) {
	for _, of := range everyStep {
		name := of(world3(t, interceptor.Funcs{})).Name()
		for nth, reached := 1, true; reached; nth++ {
			b := world3(t, interceptor.Funcs{})
			var mu sync.Mutex // nodes are asked side by side
			seen, lost := 0, ""
			b.world.OnCommand(func(n *redistest.Node, args []string) {
				mu.Lock()
				defer mu.Unlock()
				command := strings.ToUpper(args[0])
				if command == "HELLO" || command == "CLIENT" {
					return // the connection's own
				}
				if seen++; seen == nth {
					for _, both := range []string{"CLUSTER", "CONFIG", "FUNCTION", "ACL"} {
						if command == both {
							command += " " + strings.ToUpper(args[1])
						}
					}
					lost = command
					b.world.FailNext(n, command, redistest.Failure{Kind: redistest.DropBefore})
				}
			})
			err := b.do(of(b))
			mu.Lock()
			if reached = lost != ""; reached && err == nil {
				t.Errorf("%s: command %d, %s, was lost, and there is no error", name, nth, lost)
			}
			if !reached && err != nil {
				t.Errorf("%s fails by itself: %v", name, err)
			}
			mu.Unlock()
		}
	}
}

// Whichever request of a step the API server does not answer, the step is not said to be done.
func TestEveryLostRequestIsTold(t *testing.T) {
	timeout := errors.New("timeout")
	for _, of := range everyStep {
		name := of(world3(t, interceptor.Funcs{})).Name()
		for nth, reached := 1, true; reached; nth++ {
			seen := 0
			reached = false
			armed := false
			strike := func() error {
				if !armed {
					return nil
				}
				if seen++; seen == nth {
					reached = true
					return timeout
				}
				return nil
			}
			b := world3(t, lossy(strike))
			armed = true
			if err := b.do(of(b)); reached && !errors.Is(err, timeout) || !reached && err != nil {
				t.Errorf("%s: request %d was lost: %t, and got %v", name, nth, reached, err)
			}
		}
	}
}

// lossy is a client that asks before each request whether it is to fail.
func lossy(strike func() error) interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
			if err := strike(); err != nil {
				return err
			}
			return c.Get(ctx, key, o, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if err := strike(); err != nil {
				return err
			}
			return c.List(ctx, list, options...)
		},
		Create: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption) error {
			if err := strike(); err != nil {
				return err
			}
			return c.Create(ctx, o, options...)
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, options ...client.DeleteOption) error {
			if err := strike(); err != nil {
				return err
			}
			return c.Delete(ctx, o, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := strike(); err != nil {
				return err
			}
			return c.Patch(ctx, o, patch, options...)
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, sub string, o client.Object, patch client.Patch,
			options ...client.SubResourcePatchOption) error {
			if err := strike(); err != nil {
				return err
			}
			return c.SubResource(sub).Patch(ctx, o, patch, options...)
		},
		SubResourceCreate: func(_ context.Context, _ client.Client, _ string, _, _ client.Object, _ ...client.SubResourceCreateOption) error {
			return strike()
		},
	}
}
