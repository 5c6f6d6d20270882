// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/api/rediscluster/v1alpha1"
	"middleware.hc.cn/operator/internal/plugin/read"
)

// redisAccess gets redis-cli into an instance, from its container: the same for all. The password is read there, from the file that the
// operator mounts, so that it is in no argument, and in nobody's list of processes. redis.conf says which port takes TLS, if any.
const redisAccess = `if [ -r /etc/redis/auth/password ]; then REDISCLI_AUTH=$(cat /etc/redis/auth/password); export REDISCLI_AUTH; fi
export REDISCLI_HISTFILE=/dev/null
tls= dir=/etc/redis/tls port=$(sed -n 's/^tls-port "\([0-9]*\)"$/\1/p' /etc/redis/redis.conf 2>/dev/null)
case ${port:-0} in 0) port=6379 ;; *) tls="--tls --cacert $dir/ca.crt --cert $dir/tls.crt --key $dir/tls.key" ;; esac`

// redisCLI runs redis-cli with what is for it as its own arguments.
const redisCLI = redisAccess + `
exec redis-cli $tls -p "$port" -c "$@"`

func (p *program) cli() *cobra.Command {
	return &cobra.Command{
		Use:   "cli NAME [INSTANCE] [-- ARGUMENT...]",
		Short: "redis-cli in the pod of an instance, with the password and TLS of the RedisCluster",
		Long: "Runs redis-cli by `kubectl exec`, with your right to do that: whoever has it reads and writes all data. The instance is a\n" +
			"master, unless you name one. Redirections to other shards are followed. Commands are recorded nowhere; what servers answer\n" +
			"reaches the terminal as redis-cli prints it.",
		Example: "  kubectl middleware cli cache -n shop\n  kubectl middleware cli cache cache-0-1 -n shop -- INFO replication",
		RunE: func(command *cobra.Command, arguments []string) error {
			named, given := arguments, []string(nil)
			if at := command.ArgsLenAtDash(); at >= 0 {
				named, given = arguments[:at], arguments[at:]
			}
			if len(named) < 1 || len(named) > 2 {
				return errors.New("say NAME, or NAME and INSTANCE, and what is for redis-cli behind --")
			}
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			instance := ""
			if len(named) > 1 {
				instance = named[1]
			}
			if instance, err = to.instance(command.Context(), read.Key(namespace, named[0]), instance); err != nil {
				return err
			}
			flags := []string{"-i"}
			if _, onTerminal := p.terminal(); onTerminal && p.asks() {
				flags = append(flags, "-t")
			}
			err = p.run(command.Context(), p.Out, p.Err, p.execArguments(namespace, instance, flags, redisCLI, given))
			var ended *exec.ExitError
			if errors.As(err, &ended) {
				return ErrFound // kubectl or redis-cli has said why
			}
			return err
		},
		ValidArgsFunction: p.completeInstances(""),
	}
}

// asks reports whether a person is at the other end of the input.
func (p *program) asks() bool {
	file, is := p.In.(interface{ Fd() uintptr })
	return is && term.IsTerminal(int(file.Fd()))
}

// instance is the one that was named, if it can be one of the RedisCluster, else the first master that serves.
func (c *cluster) instance(ctx context.Context, key client.ObjectKey, named string) (string, error) {
	if named != "" {
		of := v1alpha1.RedisCluster{}
		of.Name = key.Name
		if _, _, is := of.InstanceOf(named); !is {
			return "", fmt.Errorf("%s is no instance of RedisCluster %s: those are called such as %s-0-1", named, key, key.Name)
		}
		return named, nil
	}
	cluster, err := c.read.TypedCluster(ctx, key)
	if err != nil {
		return "", err
	}
	if named, err = servingMaster(cluster); err != nil {
		return "", fmt.Errorf("%w: name an instance", err)
	}
	return named, nil
}

// servingMaster is the first master that serves.
func servingMaster(cluster *v1alpha1.RedisCluster) (string, error) {
	serving, err := servingMasters(cluster)
	if err != nil {
		return "", err
	}
	return serving[0].Name, nil
}

// servingMasters are the masters that serve, by shard; at least one.
func servingMasters(cluster *v1alpha1.RedisCluster) ([]v1alpha1.NodeStatus, error) {
	var serving []v1alpha1.NodeStatus
	for _, node := range cluster.Status.Nodes {
		if _, _, is := cluster.InstanceOf(node.Name); is && node.Type == master && node.Status == metav1.ConditionTrue {
			serving = append(serving, node)
		}
	}
	if len(serving) == 0 {
		return nil, fmt.Errorf("no master of RedisCluster %s/%s serves", cluster.Namespace, cluster.Name)
	}
	slices.SortStableFunc(serving, func(a, b v1alpha1.NodeStatus) int { return cmp.Compare(a.Shard, b.Shard) })
	return serving, nil
}

// execArguments are those of kubectl. What a script is given stays a list of words: no shell reads it.
func (p *program) execArguments(namespace, pod string, flags []string, script string, given []string) []string {
	return slices.Concat([]string{"exec", "--namespace=" + namespace, "--container=redis"}, flags, p.connection.repeated(),
		[]string{pod, "--", "sh", "-c", script, "redis-cli"}, given)
}

// repeated are the flags of the connection for kubectl, but for the namespace, with the context that this connection is to.
func (c *connection) repeated() []string {
	var flags []string
	c.each(func(name, value string) {
		if name != clientcmd.FlagNamespace {
			flags = append(flags, "--"+name+"="+value)
		}
	})
	if c.context != "" && !c.set.Changed(clientcmd.FlagContext) {
		flags = append(flags, "--"+clientcmd.FlagContext+"="+c.context)
	}
	return flags
}

// kubectl is a command of it. It says itself what is wrong when it ends with an error.
func (p *program) kubectl(ctx context.Context, arguments []string) (*exec.Cmd, error) {
	path, err := exec.LookPath(cmp.Or(p.Kubectl, "kubectl"))
	if err != nil {
		return nil, fmt.Errorf("find kubectl, whose plugin this is: %w", err)
	}
	return exec.CommandContext(ctx, path, arguments...), nil //nolint:gosec // no shell reads the arguments
}

// run runs kubectl with the input of this program.
func (p *program) run(ctx context.Context, out, wrong io.Writer, arguments []string) error {
	command, err := p.kubectl(ctx, arguments)
	if err != nil {
		return err
	}
	command.Stdin, command.Stdout, command.Stderr = p.In, out, wrong
	return command.Run()
}
