// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/redis"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/rediscluster/access"
	"middleware.hc.cn/operator/internal/rediscluster/byname"
	"middleware.hc.cn/operator/internal/rediscluster/snapshot"
	"middleware.hc.cn/operator/internal/rediscluster/values"
)

var now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func cluster() *v1alpha1.RedisCluster {
	return &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "uid"}}
}

// pod is instance 0 of shard 0, running at 10.0.0.1 unless it is changed.
func pod(change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-0-0",
			Labels:          map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelShard: "0", appsv1.StatefulSetRevisionLabel: "7"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "StatefulSet", Name: "c-0", UID: "set", Controller: new(true)}}},
		Spec: corev1.PodSpec{
			NodeName: "node1", Containers: []corev1.Container{{Name: "exporter", Image: "exporter:1"}, {Name: "redis", Image: "redis:7.0.15"}}},
		Status: corev1.PodStatus{PodIP: "10.0.0.1", HostIP: "192.168.0.1",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if change != nil {
		change(p)
	}
	return p
}

// statefulSet is that of shard 0, unless it is changed.
func statefulSet(change func(*appsv1.StatefulSet)) *appsv1.StatefulSet {
	s := &appsv1.StatefulSet{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "n", Name: "c-0", UID: "set", Labels: map[string]string{v1alpha1.LabelCluster: "c", v1alpha1.LabelShard: "0"},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: v1alpha1.GroupVersion.String(), Kind: "RedisCluster", Name: "c", UID: "uid", Controller: new(true)}}},
		Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))},
	}
	if change != nil {
		change(s)
	}
	return s
}

func secret(password string) *corev1.Secret {
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c-auth", Labels: map[string]string{v1alpha1.LabelCluster: "c"}}}
	access.State{Password: password, Exporter: "e", Backup: "b"}.Write(s)
	return s
}

// remembering is an observer of one cluster, with its memory.
type remembering struct {
	*Observer
	Memory
}

func (r *remembering) Observe(ctx context.Context, c *v1alpha1.RedisCluster) (*snapshot.Snapshot, error) {
	s, _, err := r.Observer.Observe(ctx, c, &r.Memory, AnswerTimeout)
	return s, err
}

func (r *remembering) Withheld(ctx context.Context, c *v1alpha1.RedisCluster) *snapshot.Withheld {
	return r.Observer.Withheld(ctx, c, &r.Memory, c.UsesTLS())
}

// newObserver observes objects of a fake API server and nodes of a simulated world.
func newObserver(t *testing.T, fails interceptor.Funcs, objects ...client.Object) (*remembering, client.Client, *redistest.World) {
	t.Helper()
	world := redistest.New(redistest.Options{InstantGossip: true})
	pool := redis.NewPool(redis.Options{Dialer: world.Dial, DialTimeout: time.Minute, IOTimeout: time.Minute})
	t.Cleanup(func() { pool.Close(); world.Close() })
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	utilruntime.Must(v1alpha1.AddToScheme(scheme))
	kube := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(fails).Build()
	return &remembering{Observer: &Observer{Children: kube, Secrets: kube, Redis: pool, ServiceAccount: "system:operator"}}, kube, world
}

func observe(t *testing.T, o *remembering) *snapshot.Snapshot {
	t.Helper()
	s, err := o.Observe(t.Context(), cluster())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// When the container of Redis ended is known while it has ended, and while it waits to be started again.
func TestWhenRedisEnded(t *testing.T) {
	ended := corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, FinishedAt: metav1.Time{Time: now}}}
	for name, tt := range map[string]struct {
		status corev1.ContainerStatus
		want   time.Time
	}{
		"ended": {corev1.ContainerStatus{State: ended}, now},
		"waits": {
			corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}, LastTerminationState: ended}, now},
		"runs again": {
			corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}, LastTerminationState: ended},
			time.Time{}},
		"never ran": {corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			tt.status.Name = "redis"
			if _, since :=
				stopped(&corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{tt.status}}}); !since.Equal(tt.want) {
				t.Errorf("it ended at %v, want %v", since, tt.want)
			}
		})
	}
}

// Why a pod does not run is said in the words of Kubernetes; a pod that does not run is not asked.
func TestPodStates(t *testing.T) {
	waits := func(reason, message string) []corev1.ContainerStatus {
		return []corev1.ContainerStatus{
			{Name: "redis", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}}}
	}
	for name, tt := range map[string]struct {
		change  func(*corev1.Pod)
		waiting string
		stopped bool // Redis is known not to run
		beside  string
	}{
		"runs": {nil, "", false, ""},
		"not scheduled": {func(p *corev1.Pod) {
			p.Spec.NodeName, p.Status = "",
				corev1.PodStatus{
					Conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available"}}}
		}, "not scheduled: 0/3 nodes are available", true, ""},
		"no address yet": {func(p *corev1.Pod) { p.Status = corev1.PodStatus{} }, "starting", false, ""},
		"image not there": {func(p *corev1.Pod) { p.Status.ContainerStatuses = waits("ImagePullBackOff", "backoff") },
			"container redis: ImagePullBackOff: backoff", true, ""},
		"without a message": {func(p *corev1.Pod) { p.Status.ContainerStatuses = waits("CrashLoopBackOff", "") },
			"container redis: CrashLoopBackOff", true, ""},
		"init container runs": {func(p *corev1.Pod) { p.Status.ContainerStatuses, p.Status.PodIP = waits("PodInitializing", ""), "" }, "starting",
			true, ""},
		"ended badly": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "redis", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}}}}
		}, "container redis ended with exit code 137 (OOMKilled)", true, ""},
		"ended well": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "redis", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
		}, "container redis has ended", true, ""},
		"its node shut down": {func(p *corev1.Pod) { p.Status.Phase, p.Status.Reason = corev1.PodFailed, "Terminated" },
			"the pod has ended: Terminated", false, ""},
		"it was finished": {func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, "the pod has ended", false, ""},
		"the exporter is not there": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses =
				append(waits("ImagePullBackOff", ""),
					corev1.ContainerStatus{Name: "redis", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
			p.Status.ContainerStatuses[0].Name = "exporter"
		}, "", false, "container exporter: ImagePullBackOff"},
		"the exporter is on its way": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses =
				append(waits("ContainerCreating", ""),
					corev1.ContainerStatus{Name: "redis", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})
			p.Status.ContainerStatuses[0].Name = "exporter"
		}, "", false, ""},
		"a sidecar is not ready": {func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "proxy", RestartPolicy: ptr.To(corev1.ContainerRestartPolicyAlways)}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "proxy", Started: ptr.To(true),
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
			p.Status.ContainerStatuses = []corev1.ContainerStatus{
				{Name: "redis", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		}, "", false, "container proxy is not ready"},
		"being deleted": {func(p *corev1.Pod) {
			p.Status.ContainerStatuses = waits("CrashLoopBackOff", "")
			p.DeletionTimestamp, p.Finalizers = &metav1.Time{Time: now}, []string{"test/wait"}
		}, "container redis: CrashLoopBackOff", false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, world := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(nil), pod(tt.change))
			world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
			s := observe(t, o)
			if len(s.Instances) != 1 {
				t.Fatalf("%d instances", len(s.Instances))
			}
			in := s.Instances[0]
			if in.Waiting != tt.waiting || (in.Redis != nil) != (tt.waiting == "") || in.Error != tt.waiting {
				t.Errorf("waiting %q, error %q, asked: %v; want %q", in.Waiting, in.Error, in.Redis != nil, tt.waiting)
			}
			if in.Stopped != tt.stopped {
				t.Errorf("known not to run: %v, want %v", in.Stopped, tt.stopped)
			}
			if in.SidecarFailure != tt.beside {
				t.Errorf("beside it %q, want %q", in.SidecarFailure, tt.beside)
			}
		})
	}
}

func TestInstance(t *testing.T) {
	o, _, world := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(nil), pod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{values.AnnotationModules: "0123"}
		p.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/d"}}}}
	}))
	node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s", Hostname: "c-0-0.c-nodes.n.svc"})
	s := observe(t, o)
	got := s.Instances[0]
	if got.Redis == nil || got.Redis.NodeID != node.ID() || !got.Redis.Master || !got.Redis.Empty() || !s.Seen[node.ID()] {
		t.Errorf("Redis is %+v, seen %v", got.Redis, s.Seen)
	}
	got.Redis = nil
	want := snapshot.Instance{Name: "c-0-0", IP: "10.0.0.1", DomainName: "c-0-0.c-nodes.n.svc", NodeName: "node1", HostIP: "192.168.0.1",
		Ready: true, Revision: "7", Image: "redis:7.0.15", Modules: "0123", OnNode: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
}

// An instance that does not answer is there, and what it is stays unknown.
func TestUnknownIsNotAbsent(t *testing.T) {
	for name, tt := range map[string]struct {
		damage  func(*redistest.World, *redistest.Node)
		says    string
		refused bool
	}{
		"dead":  {func(w *redistest.World, n *redistest.Node) { w.Kill(n) }, "refused", false},
		"hangs": {func(w *redistest.World, n *redistest.Node) { w.Partition(n) }, "", false},
		"another password": {func(w *redistest.World, n *redistest.Node) {
			w.Kill(n)
			w.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "t"})
		}, "WRONGPASS", true},
		"another instance": {func(w *redistest.World, n *redistest.Node) {
			w.Kill(n)
			w.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s", Hostname: "d-0-0.d-nodes.n.svc"})
		}, "d-0-0.d-nodes.n.svc answers at its address 10.0.0.1", false},
	} {
		t.Run(name, func(t *testing.T) {
			o, _, world := newObserver(t, interceptor.Funcs{}, secret("s"), statefulSet(nil), pod(nil))
			node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "s"})
			tt.damage(world, node)
			in := observe(t, o).Instances[0]
			if in.Redis != nil || in.Error == "" || !strings.Contains(in.Error, tt.says) || in.Refused != tt.refused {
				t.Errorf("Redis %+v, error %q, refused %v", in.Redis, in.Error, in.Refused)
			}
			if strings.Contains(in.Error, "\"s\"") {
				t.Errorf("the error tells the password: %s", in.Error)
			}
		})
	}
}

// A Kubernetes that cannot be read is an error, never an empty cluster.
func TestUnreadable(t *testing.T) {
	broken := errors.New("connection refused")
	for _, list := range []client.ObjectList{&corev1.PodList{}, &appsv1.StatefulSetList{}} {
		o, _, _ := newObserver(t,
			interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, into client.ObjectList, options ...client.ListOption) error {
				if fmt.Sprintf("%T", into) == fmt.Sprintf("%T", list) {
					return broken
				}
				return c.List(ctx, into, options...)
			}})
		if s, err := o.Observe(t.Context(), cluster()); !errors.Is(err, broken) || s != nil {
			t.Errorf("without %T: %v, %v", list, s, err)
		}
	}
}

func TestAuth(t *testing.T) {
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "c-auth", errors.New("no"))
	answers := func(err error) interceptor.Funcs {
		return interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				if err != nil {
					return err
				}
				return c.Get(ctx, key, o, options...)
			}}
	}
	foreign, half := secret("s"), secret("s")
	foreign.Labels = nil
	delete(half.Data, "auth.conf")
	for name, tt := range map[string]struct {
		err     error
		secret  *corev1.Secret
		known   bool
		absent  bool
		problem string
	}{
		"known":           {secret: secret("s"), known: true},
		"absent":          {absent: true},
		"forbidden":       {err: forbidden, problem: "kubectl create rolebinding middleware-operator --namespace n --clusterrole middleware-operator-namespace --serviceaccount system:operator"},
		"someone else's":  {secret: foreign, problem: "Secret c-auth exists and was not made for this cluster"},
		"a key is gone":   {secret: half, problem: "restore them"},
		"an empty string": {secret: secret(""), problem: "restore them"},
	} {
		t.Run(name, func(t *testing.T) {
			var objects []client.Object
			if tt.secret != nil {
				objects = append(objects, tt.secret)
			}
			o, _, _ := newObserver(t, answers(tt.err), objects...)
			got := observe(t, o).Auth
			if got.Known != tt.known || got.Absent != tt.absent || !strings.Contains(got.Problem, tt.problem) ||
				(tt.problem == "") != (got.Problem == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
	o, _, _ := newObserver(t, answers(errors.New("timeout")))
	if s, err := o.Observe(t.Context(), cluster()); err == nil {
		t.Errorf("a Secret that cannot be read gives %+v, want an error", s.Auth)
	}
	open := cluster()
	open.Spec.Auth.Enabled = new(false)
	if s, err := o.Observe(t.Context(), open); err != nil || !s.Auth.Known {
		t.Errorf("without a password no Secret is read: %v", err)
	}
}

// The Secret is read once, and again after Redis refused its password.
func TestRefusedPasswordIsReadAgain(t *testing.T) {
	reads := 0
	o, kube, world :=
		newObserver(t,
			interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					reads++
					return c.Get(ctx, key, object, options...)
				}}, secret("old"), statefulSet(nil), pod(nil))
	node := world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "old"})
	observe(t, o)
	if s := observe(t, o); s.Instances[0].Redis == nil || reads != 1 {
		t.Fatalf("the Secret was read %d times for two reconciliations; %+v", reads, s.Instances[0])
	}

	world.Kill(node)
	world.AddNode(redistest.NodeOptions{IP: "10.0.0.1", Password: "new"})
	changed := secret("new")
	if err := kube.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if in := observe(t, o).Instances[0]; !in.Refused {
		t.Fatalf("the old password was not refused: %+v", in)
	}
	if in := observe(t, o).Instances[0]; in.Redis == nil || o.Credentials(cluster()).Password != "new" {
		t.Errorf("the new password is not in use: %+v", in)
	}
}

// The ConfigMap is read once a minute, and at once while something is wrong with it.
func TestConfigAge(t *testing.T) {
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "mine"},
		Data: map[string]string{"redis.conf": "maxclients 100"}}
	away := false
	o, kube, _ :=
		newObserver(t,
			interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
					if away {
						return errors.New("etcd is away")
					}
					return c.Get(ctx, key, object, options...)
				}}, config)
	c := cluster()
	c.Spec.Pod = []v1alpha1.PodTemplate{{Configmap: "mine"}}
	want := func(after time.Duration, maxclients, problem string, fails bool) {
		t.Helper()
		o.Now = func() time.Time { return now.Add(after) }
		got, err := o.Observer.config(t.Context(), c, &o.Memory)
		if got.Settings["maxclients"] != maxclients || !strings.Contains(got.Problem, problem) || (problem == "") != (got.Problem == "") ||
			(err != nil) != fails {
			t.Errorf("after %s: %+v, %v; want %q, %q", after, got, err, maxclients, problem)
		}
	}
	write := func(text string) {
		t.Helper()
		config.Data["redis.conf"] = text
		if err := kube.Update(t.Context(), config); err != nil {
			t.Fatal(err)
		}
	}
	away = true
	want(0, "", "", true)
	away = false
	want(0, "100", "", false)
	write("maxclients 200")
	want(byname.Age-1, "100", "", false)
	want(byname.Age, "200", "", false)
	away = true // what was read goes on to be right
	want(2*byname.Age, "200", "", false)
	away = false
	write("no directive at all \"")
	want(2*byname.Age+1, "", "spec.pod[0].configmap: ", false)
	write("maxclients 300") // mended: seen at once
	want(2*byname.Age+2, "300", "", false)
	if err := kube.Delete(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	want(2*byname.Age+3, "300", "", false)
	want(4*byname.Age, "", "ConfigMap mine does not exist in namespace n", false)
}

// The time that a rollout may take is counted for the present spec only.
func TestRolledAt(t *testing.T) {
	at := metav1.NewTime(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC))
	cluster := &v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
	if got := rolledAt(cluster); !got.IsZero() {
		t.Errorf("without a rollout: %s", got)
	}
	cluster.Status.Rollout, cluster.Status.ObservedGeneration = &v1alpha1.RolloutStatus{LastProgressTime: at}, 2
	if got := rolledAt(cluster); !got.Equal(at.Time) {
		t.Errorf("got %s, want %s", got, at)
	}
	cluster.Generation = 3
	if got := rolledAt(cluster); !got.IsZero() {
		t.Errorf("of a spec that has just changed: %s", got)
	}
}

// How often a container was started again is the Redis container's, and a reason is no longer than a word.
func TestRestarts(t *testing.T) {
	pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{
		{Name: "exporter", RestartCount: 9},
		{Name: "redis", RestartCount: 3, LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: "OOMKilled", ExitCode: 137}}},
	}}}
	if times, how := restarts(pod); times != 3 || how != "OOMKilled, exit code 137" {
		t.Errorf("%d times, %q", times, how)
	}
	pod.Status.ContainerStatuses[1].LastTerminationState.Terminated.Reason = strings.Repeat("a", 10000)
	if _, how := restarts(pod); len(how) > 100 {
		t.Errorf("%d characters", len(how))
	}
	if times, how := restarts(&corev1.Pod{}); times != 0 || how != "" {
		t.Errorf("%d times, %q", times, how)
	}
}
