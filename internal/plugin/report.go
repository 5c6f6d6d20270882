// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"middleware.hc.cn/operator/internal/plugin/checkup"
	"middleware.hc.cn/operator/internal/plugin/journal"
	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/support"
	"middleware.hc.cn/operator/internal/plugin/terminal"
)

// linesOfReport is how many lines of each pod's log are in a report.
const linesOfReport = 1000

func (p *program) report() *cobra.Command {
	file := ""
	command := &cobra.Command{
		Use:   "report NAME",
		Short: "a bundle for who is to help with a RedisCluster: objects, events and logs, without Secrets",
		Long: "Writes a .tar.gz with the status, the checks, the objects of the RedisCluster, its events and the logs of its instances. No\n" +
			"Secret is read, and what looks like a password is taken out of all text. Look it through before you send it.",
		Example: "  kubectl middleware report cache -n shop",
		Args:    cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, arguments []string) error {
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			files, err := to.report(command.Context(), read.Key(namespace, arguments[0]))
			if err != nil {
				return err
			}
			folder := "middleware-" + namespace + "-" + arguments[0] + "-" + to.read.Now().UTC().Format("20060102-150405")
			if file == "" {
				file = folder + ".tar.gz"
			}
			if err := save(file, folder, files, to); err != nil {
				return err
			}
			return p.say("%s: %d files; look them through before you send them", file, len(files))
		},
		ValidArgsFunction: p.completeClusters,
	}
	command.Flags().StringVar(&file, "file", "", "what to write, which must not exist (default: a name with the time)")
	return command
}

// save writes a file that only its owner can read, and leaves none behind that is not whole.
func save(file, folder string, files []support.File, c *cluster) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) //nolint:gosec // the person at the command line names it
	if err != nil {
		return err
	}
	err = errors.Join(support.Write(out, folder, files, c.read.Now()), out.Close())
	if err != nil {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

// reported are the kinds whose objects with the RedisCluster's label are in a report. Secrets are not among them.
var reported = []schema.GroupVersionKind{
	{Version: "v1", Kind: "Pod"}, {Version: "v1", Kind: "PersistentVolumeClaim"}, {Version: "v1", Kind: "Service"},
	{Version: "v1", Kind: "ConfigMap"}, {Group: "apps", Version: "v1", Kind: "StatefulSet"},
	{Group: "apps", Version: "v1", Kind: "Deployment"}, {Group: "batch", Version: "v1", Kind: "Job"},
	{Group: "policy", Version: "v1", Kind: "PodDisruptionBudget"},
	{Group: "networking.k8s.io", Version: "v1", Kind: "NetworkPolicy"},
}

// report reads what is in the bundle. What cannot be read is named in it.
func (c *cluster) report(ctx context.Context, key client.ObjectKey) ([]support.File, error) {
	object, err := c.read.Object(ctx, read.RedisCluster, key)
	if err != nil {
		return nil, err
	}
	seen, err := c.read.Cluster(ctx, key)
	if err != nil {
		return nil, err
	}
	var unread []string
	for _, one := range seen.Unread {
		unread = append(unread, one.What+": "+one.Why)
	}
	page := terminal.Page{Width: 2 * usualWidth}
	files := []support.File{
		{Name: "status.txt", Text: []byte(support.Text(overview.Of(seen).Text(page, seen.Now)))},
		{Name: "check.txt", Text: []byte(support.Text(checkup.Of(c.look(ctx, key.Namespace)).Text(page)))},
	}
	add := func(name string, contents ...map[string]any) error {
		text := ""
		for _, content := range contents {
			encoded, err := yaml.Marshal(support.Object(content))
			if err != nil {
				return fmt.Errorf("encode %s: %w", name, err)
			}
			text += "---\n" + string(encoded)
		}
		files = append(files, support.File{Name: name, Text: []byte(text)})
		return nil
	}
	if err := add("rediscluster.yaml", object.Object); err != nil {
		return nil, err
	}
	for _, kind := range reported {
		objects, err := c.read.Labelled(ctx, kind, key)
		if err != nil {
			unread = append(unread, kind.Kind+": "+err.Error())
		}
		var contents []map[string]any
		for i := range objects {
			contents = append(contents, objects[i].Object)
		}
		if err := add(strings.ToLower(kind.Kind)+"s.yaml", contents...); err != nil {
			return nil, err
		}
	}
	encoded, err := encodedEvents(seen.Events)
	if err != nil {
		return nil, fmt.Errorf("encode events: %w", err)
	}
	files = append(files, support.File{Name: "events.json", Text: encoded})
	log, failed := c.reportedLogs(ctx, key)
	unread = append(unread, failed...)
	files = append(files, support.File{Name: "instances.log", Text: []byte(support.Text(log))})
	return append(files, support.File{Name: "not-read.txt", Text: []byte(told(unread))}), nil
}

// told are lines that may repeat what a server or the author of an object wrote.
func told(lines []string) string {
	text := ""
	for _, line := range lines {
		text += support.Text(terminal.Clean(line)) + "\n"
	}
	return text
}

// encodedEvents takes passwords out of each string, and encodes then: within JSON a quotation mark is not what it was.
func encodedEvents(events []corev1.Event) ([]byte, error) {
	contents := []map[string]any{}
	for i := range events {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&events[i])
		if err != nil {
			return nil, err
		}
		contents = append(contents, support.Object(content))
	}
	return json.MarshalIndent(contents, "", "  ")
}

func (c *cluster) reportedLogs(ctx context.Context, key client.ObjectKey) (text string, unread []string) {
	pods, err := c.read.Instances(ctx, key)
	if err != nil {
		return "", []string{err.Error()}
	}
	lines, unread, err := c.logs(ctx, pods, logsOf{container: "redis", tail: linesOfReport})
	if err != nil {
		return "", []string{"logs: " + err.Error()}
	}
	return journal.Text(terminal.Page{Width: usualWidth}, lines), unread
}
