// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/archive/report"
	"middleware.hc.cn/operator/internal/backupjob"
	"middleware.hc.cn/operator/internal/redis/redistest"
	"middleware.hc.cn/operator/internal/redis/slots"
	"middleware.hc.cn/operator/internal/rediscluster/plan"
)

// outside is a server that is imported, or the masters of its cluster, with an application that writes there; and what Kubernetes and
// the backup program make of the operator's Jobs.
type outside struct {
	s       *simulation
	masters []*redistest.Node
	slots   []slots.Set
	// prepared are, by shard, what the claims of first instances hold whose pods have not started.
	prepared map[int]*redistest.StandIn
	// made counts the objects of each name: another one has another UID.
	made     map[string]int
	services int

	mu sync.Mutex
	// acknowledged is what was written before the cluster took over; led are the shards whose application writes to the cluster.
	acknowledged map[string]string
	led          map[int]bool
	writes       int
	// isTorn is set when a clone has stalled between its first and its last shard that took over.
	isTorn bool
}

// imported makes a cluster that is to begin with the data of a server outside with so many masters: nothing is there but the spec.
func imported(masters int, clone bool) func(t *testing.T, valkey bool) *simulation {
	return func(t *testing.T, valkey bool) *simulation {
		t.Helper()
		s := prepared(t, 1, 2, valkey)
		o := &outside{s: s, prepared: map[int]*redistest.StandIn{}, made: map[string]int{}, acknowledged: map[string]string{},
			led: map[int]bool{}}
		for shard, part := range slots.All().Split(masters) {
			o.slots = append(o.slots, part)
			o.masters = append(o.masters, s.world.AddNode(redistest.NodeOptions{IP: fmt.Sprintf("10.1.0.%d", shard+1), Valkey: valkey,
				Slots: part, Epoch: uint64(shard + 1)}))
		}
		o.write()
		s.outside = o
		s.loop.Observer.BackupImage, s.loop.Actor.BackupImage = "operator:1", "operator:1"
		s.cluster.Spec.Auth, s.cluster.Spec.Pod = v1alpha1.Auth{}, nil
		s.cluster.Spec.Storage = &v1alpha1.Storage{Size: resource.MustParse("1Gi")}
		s.cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Import: &v1alpha1.Import{Address: "redis.example.com:6379", CutOver: true,
			PauseSeconds: ptr.To[int32](5)}}
		if clone {
			s.cluster.Spec.Bootstrap = &v1alpha1.Bootstrap{Clone: &v1alpha1.Clone{Name: "other"}}
			s.create(&v1alpha1.RedisCluster{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: "other", UID: "other"}})
			s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: "other-auth",
				Labels: map[string]string{v1alpha1.LabelClone: "true"}}})
		}
		s.awaits = o.over
		return s
	}
}

// write writes keys of each shard of the source, unless writes are paused there, or the application was led to the cluster: that is when
// the cluster's shard has taken over.
func (o *outside) write() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for shard, master := range o.masters {
		first := o.s.find(o.s.cluster.ShardName(shard) + "-0")
		o.led[shard] = o.led[shard] || first != nil && first.node.Master() == ""
		if o.led[shard] {
			continue
		}
		o.writes++
		key, value := restoredKey(o.slots[shard]), fmt.Sprintf("outside:%d", o.writes)
		for _, key := range []string{key, fmt.Sprintf("%d:{%s}", o.writes%20, key)} {
			if master.Put(key, value) {
				o.acknowledged[key] = value
			}
		}
	}
}

// admit is what the API server does with what is made.
func (o *outside) admit(object client.Object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	name := fmt.Sprintf("%T %s", object, object.GetName())
	o.made[name]++
	if object.GetUID() == "" {
		object.SetUID(types.UID(fmt.Sprintf("%s %d", name, o.made[name])))
	}
	if service, is := object.(*corev1.Service); is && service.Spec.ClusterIP == "" {
		o.services++
		service.Spec.ClusterIP = fmt.Sprintf("10.96.0.%d", o.services)
	}
}

// rendered are the StatefulSets of a topology, as far as the operator's Jobs are like their pods.
func (o *outside) rendered(topology v1alpha1.Topology) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for shard, replicas := range topology {
		set := o.s.statefulSet(shard, int(replicas))
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{ObjectMeta: metav1.ObjectMeta{Name: "data"}, Spec: o.claimSpec()}}
		set.Spec.VolumeClaimTemplates[0].Labels = o.s.labels(shard)
		set.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("StatefulSet"))
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(set)
		if err != nil {
			o.s.t.Fatal(err)
		}
		objects = append(objects, &unstructured.Unstructured{Object: content})
	}
	return objects
}

func (o *outside) claimSpec() corev1.PersistentVolumeClaimSpec {
	return corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceStorage: o.s.cluster.Spec.Storage.Size}}}
}

// begun reports whether the children are the next to be made: the first instances are prepared, and their relays are there.
func (o *outside) begun() bool {
	is := o.s.cluster.Status.Import
	if is == nil || is.Phase == v1alpha1.ImportPreparing {
		return false
	}
	relays := o.jobs(backupjob.Relay)
	return is.Phase == v1alpha1.ImportCutOver || len(relays) == len(o.masters)
}

// begin gives an instance what its claim holds, and makes the claim if there is none, as the StatefulSet's controller does.
func (o *outside) begin(shard, ordinal int, options *redistest.NodeOptions) {
	if ordinal == 0 {
		options.Follows = o.prepared[shard]
	}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: o.s.cluster.Namespace,
		Name: o.s.cluster.ClaimName(shard, ordinal), Labels: o.s.labels(shard)}, Spec: o.claimSpec()}
	o.admit(claim)
	if err := o.s.kube.Create(o.s.t.Context(), claim); err != nil && !apierrors.IsAlreadyExists(err) {
		o.s.t.Fatal(err)
	}
}

// jobs are those that run a command, by shard.
func (o *outside) jobs(command string) map[int]*batchv1.Job {
	var list batchv1.JobList
	if err := o.s.kube.List(o.s.t.Context(), &list); err != nil {
		o.s.t.Fatal(err)
	}
	found := map[int]*batchv1.Job{}
	for i := range list.Items {
		job := &list.Items[i]
		shard, ok := o.s.cluster.RelayedBy(job.Name)
		if command == backupjob.Follow {
			shard, ok = o.s.cluster.RestoredBy(job.Name)
		}
		if ok && backupjob.Of(job.Spec.Template.Spec).Args[0] == command {
			found[shard] = job
		}
	}
	return found
}

// control is what happens of itself: objects go with their owners, Jobs run their pods, and relays are reached by their Services.
func (o *outside) control() {
	o.collect()
	for shard, job := range o.jobs(backupjob.Follow) {
		claim := &corev1.PersistentVolumeClaim{}
		key := client.ObjectKey{Namespace: job.Namespace, Name: o.s.cluster.ClaimName(shard, 0)}
		if o.s.kube.Get(o.s.t.Context(), key, claim) == nil && !backupjob.Ended(job) {
			o.follow(shard, job)
		}
	}
	relays := map[string]*redistest.Node{}
	for shard, job := range o.jobs(backupjob.Relay) {
		ip := fmt.Sprintf("10.2.0.%d", shard+1)
		o.run(job, corev1.PodStatus{Phase: corev1.PodRunning, PodIP: ip,
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}})
		relays[ip] = o.source(argument(job, "--slots="))
		service := &corev1.Service{}
		key := client.ObjectKey{Namespace: job.Namespace, Name: o.s.cluster.RelayName(shard)}
		if o.s.kube.Get(o.s.t.Context(), key, service) == nil {
			relays[service.Spec.ClusterIP] = relays[ip]
		}
	}
	o.s.world.SetRelays(relays)
}

// source is the master of slots.
func (o *outside) source(text string) *redistest.Node {
	for shard, part := range o.slots {
		if part.String() == text {
			return o.masters[shard]
		}
	}
	o.s.fail("a relay for slots %s", text)
	return nil
}

// argument is what follows a flag among the arguments of a Job.
func argument(job *batchv1.Job, flag string) string {
	for _, arg := range backupjob.Of(job.Spec.Template.Spec).Args {
		if value, is := strings.CutPrefix(arg, flag); is {
			return value
		}
	}
	return ""
}

// follow is what the program does that prepares an instance: it writes over nothing.
func (o *outside) follow(shard int, job *batchv1.Job) {
	said := report.Following{Engine: "redis", Version: "7.0.15", Slots: o.slots[shard].String(), Shards: len(o.slots)}
	ip, _, _ := strings.Cut(argument(job, "--master="), ":")
	if o.s.find(o.s.cluster.ShardName(shard)+"-0") != nil {
		said = report.Following{Error: "an instance has its data there"}
	} else {
		o.prepared[shard] = &redistest.StandIn{ID: argument(job, "--master-id="), IP: ip, Slots: o.slots[shard], Epoch: uint64(1025 + shard)}
	}
	message, err := said.Encode()
	if err != nil {
		o.s.t.Fatal(err)
	}
	o.run(job, corev1.PodStatus{Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{{Name: backupjob.Container,
		State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: string(message)}}}}})
	ended := batchv1.JobComplete
	if said.Error != "" {
		ended = batchv1.JobFailed
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: ended, Status: corev1.ConditionTrue}}
	if err := o.s.kube.Status().Update(o.s.t.Context(), job); err != nil {
		o.s.t.Fatal(err)
	}
}

// run makes the pod of a Job, unless it is there.
func (o *outside) run(job *batchv1.Job, status corev1.PodStatus) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name + "-x", UID: job.UID + "-x",
		Labels:          map[string]string{batchv1.JobNameLabel: job.Name},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}},
		Spec: job.Spec.Template.Spec, Status: status}
	if err := o.s.kube.Create(o.s.t.Context(), pod); err != nil && !apierrors.IsAlreadyExists(err) {
		o.s.t.Fatal(err)
	}
}

// collect deletes what goes with a Job that is gone.
func (o *outside) collect() {
	var jobs batchv1.JobList
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	for _, list := range []client.ObjectList{&jobs, &pods, &claims} {
		if err := o.s.kube.List(o.s.t.Context(), list); err != nil {
			o.s.t.Fatal(err)
		}
	}
	gone := func(object client.Object) bool {
		owners := object.GetOwnerReferences()
		at := slices.IndexFunc(owners, func(owner metav1.OwnerReference) bool { return owner.Kind == "Job" })
		return at >= 0 && !slices.ContainsFunc(jobs.Items, func(job batchv1.Job) bool { return job.UID == owners[at].UID })
	}
	var objects []client.Object
	for i := range pods.Items {
		objects = append(objects, &pods.Items[i])
	}
	for i := range claims.Items {
		objects = append(objects, &claims.Items[i])
	}
	for _, object := range objects {
		if !gone(object) {
			continue
		}
		if err := o.s.kube.Delete(o.s.t.Context(), object); err != nil {
			o.s.t.Fatal(err)
		}
		o.s.say("%s goes with its Job", object.GetName())
	}
}

// over reports whether nothing of the import is left to be done.
func (o *outside) over() bool {
	o.control()
	is := o.s.cluster.Status.Import
	return is != nil && is.Phase == v1alpha1.ImportCutOver && len(o.jobs(backupjob.Follow))+len(o.jobs(backupjob.Relay)) == 0
}

// ofTwoMoments is what comes of a clone whose operator ended between its first and its last shard that took over: a person is told to make
// it anew, since what is left of the others is of a later moment.
const ofTwoMoments = "a clone of two moments"

// torn reports whether a step says that this has become of a clone, which is true of it then.
func (o *outside) torn(step plan.Step) bool {
	stall, is := step.(plan.Stall)
	if o == nil || !is || !strings.Contains(stall.Reason, "the clone would be of two moments; delete the RedisCluster") {
		return false
	}
	over := 0
	for shard := range o.masters {
		if o.s.named(o.s.cluster.ShardName(shard)+"-0").node.Master() == "" {
			over++
		}
	}
	if o.s.cluster.CloneOf() == "" || over == 0 || over == len(o.masters) {
		o.s.fail("%d shards have taken over: %s", over, stall.Reason)
	}
	o.isTorn = true
	return true
}

// wantServing asserts that the source takes writes.
func (o *outside) wantServing() {
	for _, master := range o.masters {
		if !master.Put("key", "value") {
			o.s.fail("writes stay paused at the source")
		}
	}
}

// outcome is what is left of the import, and what its status says.
func (o *outside) outcome(b *strings.Builder) {
	var services corev1.ServiceList
	var claims corev1.PersistentVolumeClaimList
	for _, list := range []client.ObjectList{&services, &claims} {
		if err := o.s.kube.List(o.s.t.Context(), list); err != nil {
			o.s.t.Fatal(err)
		}
	}
	for i := range services.Items {
		fmt.Fprintf(b, "Service %s\n", services.Items[i].Name)
	}
	for i := range claims.Items {
		fmt.Fprintf(b, "claim %s of %d owners\n", claims.Items[i].Name, len(claims.Items[i].OwnerReferences))
	}
	is, missed := o.s.cluster.Status.Import, "unknown"
	if is.MissedBytes != nil {
		missed = fmt.Sprint(*is.MissedBytes)
	}
	fmt.Fprintf(b, "import of %s: %s, slots %v, missed %s\n", is.Address, is.Phase, is.Slots, missed)
}
