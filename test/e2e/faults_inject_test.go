// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"middleware.hc.cn/operator/test/live"
	"middleware.hc.cn/operator/test/process"
)

// processOf is the one process of a program in a control group (process.Find).
func processOf(t *testing.T, program, group string) int {
	t.Helper()
	found, err := process.Find(program, group)
	if err != nil || len(found) != 1 {
		t.Fatalf("%d processes of %s in %s (%v), want one", len(found), program, group, err)
	}
	return found[0]
}

// networkOf is the process that holds the network of a pod: the local cluster's sandboxes sleep.
func networkOf(t *testing.T, pod string) int {
	t.Helper()
	found, err := process.Find("sleep", pod)
	if err != nil || len(found) == 0 {
		t.Fatalf("pod %s has no sandbox (%v)", pod, err)
	}
	return found[0] // the application's own program sleeps, too, in the same network
}

func signal(s syscall.Signal, program, group string) error {
	found, err := process.Signal(s, program, group)
	if err == nil && found == 0 {
		err = fmt.Errorf("no process of %s in %s", program, group)
	}
	return err
}

// hang stops processes until the fault ends. Those that have ended meanwhile need not go on.
func hang(t *testing.T, program, group string) (end func()) {
	t.Helper()
	if err := signal(syscall.SIGSTOP, program, group); err != nil {
		t.Fatal(err)
	}
	return func() { _ = signal(syscall.SIGCONT, program, group) }
}

// repeatedly runs something again and again until the fault ends, and then to its own end.
func repeatedly(something func()) (end func()) {
	var over sync.WaitGroup
	stop := make(chan struct{})
	over.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				something()
			}
		}
	})
	return func() { close(stop); over.Wait() }
}

// shell runs a command of this machine.
func shell(t *testing.T, command string) string {
	t.Helper()
	out, err := exec.CommandContext(context.Background(), "sh", "-c", command).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", command, err, out)
	}
	return strings.TrimSpace(string(out))
}

// within runs a command in the network of a process.
func within(t *testing.T, pid int, command string) {
	t.Helper()
	shell(t, fmt.Sprintf("nsenter -t %d -n %s", pid, command))
}

// dropPackets drops the packets that rules of iptables name, in the networks of processes, until the fault ends. A network that is
// gone by then is left out.
func dropPackets(t *testing.T, pids []int, rules ...string) (end func()) {
	t.Helper()
	for _, pid := range pids {
		for _, rule := range rules {
			within(t, pid, "iptables -w -I "+rule+" -j DROP")
		}
	}
	return func() {
		for _, pid := range pids {
			if _, err := os.Stat(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
				continue
			}
			for _, rule := range rules {
				within(t, pid, "iptables -w -D "+rule+" -j DROP")
			}
		}
	}
}

// addressed are rules for each of the addresses.
func addressed(addresses []string, prefixes ...string) []string {
	var rules []string
	for _, address := range addresses {
		for _, prefix := range prefixes {
			rules = append(rules, prefix+" "+address)
		}
	}
	return rules
}

// exhaustMemory takes memory on the account of a process's container until the kernel kills for it: not what takes it, but what was
// there.
func exhaustMemory(t *testing.T, pid int) {
	t.Helper()
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	group := ""
	for line := range strings.Lines(string(groups)) {
		if _, path, found := strings.Cut(strings.TrimSpace(line), ":memory:"); found {
			group = filepath.Join("/sys/fs/cgroup/memory", path)
		}
	}
	if group == "" {
		t.Fatalf("process %d is in no control group for memory: %s", pid, groups)
	}
	shell(t, fmt.Sprintf(`echo 1000 >/proc/%d/oom_score_adj
sh -c 'echo -1000 >/proc/self/oom_score_adj; echo $$ >%s/cgroup.procs; exec timeout 20 tail /dev/zero' >/dev/null 2>&1 &
hog=$!
for i in $(seq 100); do kill -0 %[1]d 2>/dev/null || break; sleep 0.1; done
kill $hog 2>/dev/null; ! kill -0 %[1]d 2>/dev/null`, pid, group))
}

func podNamed(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	if err := live.Get(t, pod); err != nil {
		t.Fatal(err)
	}
	return pod
}

func operatorUID(t *testing.T) string { return string(operatorPods(t)[0].UID) }

// disk is a small file system of its own where an instance's claim was.
type disk struct {
	kubelet       int    // its process, which sees the node's files
	folder, image string // in the eyes of the kubelet, and of this machine
}

// do runs a command where the kubelet sees the disk as $1.
func (d disk) do(t *testing.T, command string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.CommandContext(context.Background(), "nsenter",
		"-t", fmt.Sprint(d.kubelet), "-m", "-p", "sh", "-c", command, "sh", d.folder, d.image)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v: %s", command, err, out.String())
	}
	return strings.TrimSpace(out.String())
}

// unused waits until the kubelet has taken a volume from the pod that had it: what is mounted on the volume before goes with that.
func (d disk) unused(t *testing.T, volume string) {
	t.Helper()
	live.Eventually(t, "no pod has "+volume, func() error {
		mounts, err := os.ReadFile(fmt.Sprintf("/proc/%d/mountinfo", d.kubelet))
		if err == nil && strings.Contains(string(mounts), volume) {
			return errors.New("one has")
		}
		return err
	})
}

// whileGone does something while no pod of the named instances runs: their nodes take no pods until it is done.
func (s *struck) whileGone(t *testing.T, do func(), instances ...string) {
	t.Helper()
	cordonAll(t, true)
	defer cordonAll(t, false)
	killed := killPods(t, s.cluster, instances...)
	live.Eventually(t, "the processes are gone", func() error {
		for uid := range killed {
			if found, err := process.Find("redis-server", uid); err != nil || len(found) > 0 {
				return fmt.Errorf("%d processes of pod %s (%w)", len(found), uid, err)
			}
		}
		return nil
	})
	do()
}

// onDisks moves the data of every instance to a disk of its own.
func (s *struck) onDisks(t *testing.T) {
	t.Helper()
	folder := t.TempDir()
	s.disks = map[string]disk{}
	s.whileGone(t, func() {
		for _, instance := range s.cluster.Status.Nodes {
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: s.cluster.Namespace, Name: "data-" + instance.Name}}
			if err := live.Get(t, claim); err != nil {
				t.Fatal(err)
			}
			volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: claim.Spec.VolumeName}}
			if err := live.Get(t, volume); err != nil {
				t.Fatal(err)
			}
			image := filepath.Join(folder, instance.Name)
			shell(t, "dd if=/dev/zero of="+image+" bs=1M count=96 && mkfs.ext4 -q "+image)
			d := disk{kubelet: processOf(t, "kubelet", "/"+instance.Hostname+"/"), folder: volume.Spec.Local.Path}
			d.image = shell(t, "losetup --find --show "+image)
			s.disks[instance.Name] = d
			d.unused(t, volume.Name)
			d.do(t, `set -e; mkdir /run/moving; mount -o errors=remount-ro "$2" /run/moving; cp -a "$1"/. /run/moving
umount /run/moving; rmdir /run/moving; mount -o errors=remount-ro "$2" "$1"`)
			t.Cleanup(func() { d.do(t, `umount -l "$1" && losetup -d "$2"`) }) // the container keeps its own until it ends
		}
	}, names(s.cluster)...)
	live.Eventually(t, "it is Ready on its disks", func() error { return atRest(t, s.cluster) })
}

// ofDisk chooses the instances of a role of one shard, or all of them.
func (s *struck) ofDisk(t *testing.T, role string) []disk {
	t.Helper()
	var disks []disk
	if role != "" {
		return append(disks, s.disks[ofRole(t, s.cluster, 0, role).Name])
	}
	for _, d := range s.disks {
		disks = append(disks, d)
	}
	return disks
}

func (s *struck) diskFull(t *testing.T, role string) func() {
	disks := s.ofDisk(t, role)
	for _, d := range disks {
		d.do(t, `mountpoint -q "$1" || exit 1 # never the disk of the machine
dd if=/dev/zero of="$1/filler" bs=64k 2>/dev/null; dd if=/dev/zero of="$1/filler2" bs=512 2>/dev/null; true`)
	}
	return func() {
		for _, d := range disks {
			d.do(t, `rm -f "$1/filler" "$1/filler2"`)
		}
	}
}

func (s *struck) slowDisk(t *testing.T) func() {
	d := s.ofDisk(t, "master")[0]
	return repeatedly(func() {
		d.do(t, `fsfreeze --freeze "$1"; sleep 1.5; fsfreeze --unfreeze "$1"`)
		time.Sleep(500 * time.Millisecond)
	})
}

// diskFails makes the kernel find an error on the disk, after which nothing can be written to it until it is mounted again.
func (s *struck) diskFails(t *testing.T) func() {
	instance := ofRole(t, s.cluster, 0, "master").Name
	d := s.disks[instance]
	shell(t, "echo 1 >/sys/fs/ext4/"+filepath.Base(d.image)+"/trigger_fs_error")
	return func() {
		s.whileGone(t, func() { d.do(t, `umount -l "$1"; sleep 1; fsck.ext4 -fy "$2"; mount -o errors=remount-ro "$2" "$1"`) }, instance)
	}
}
