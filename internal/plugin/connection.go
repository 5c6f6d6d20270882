// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"middleware.hc.cn/operator/internal/plugin/read"
)

// connection is which API server is asked, as whom, and in which namespace: kubectl's own flags say it.
type connection struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides clientcmd.ConfigOverrides
	// set are the flags themselves.
	set *pflag.FlagSet
	// context is the one of the kubeconfig that this connection was opened with; empty: it is not known, or there is none (in a pod).
	context string
	// lasts: commands to type are read when somebody may have chosen another context, so that they name it.
	lasts bool
}

func newConnection() *connection {
	return &connection{rules: clientcmd.NewDefaultClientConfigLoadingRules(), set: pflag.NewFlagSet("connection", pflag.ContinueOnError)}
}

func (c *connection) flags(set *pflag.FlagSet) {
	c.set.StringVar(&c.rules.ExplicitPath, "kubeconfig", "", "path to the kubeconfig file (default: KUBECONFIG, or ~/.kube/config)")
	named := clientcmd.RecommendedConfigOverrideFlags("")
	named.AuthOverrideFlags.Username, named.AuthOverrideFlags.Password = clientcmd.FlagInfo{}, clientcmd.FlagInfo{}
	named.ClusterOverrideFlags.ProxyURL = clientcmd.FlagInfo{} // kubectl has none of them, and is given the others
	clientcmd.BindOverrideFlags(&c.overrides, c.set, named)
	set.AddFlagSet(c.set)
}

// typed is a command for the user to type, which names its namespace: with the flags that this one was given, it acts in the same
// cluster as the same user. A token is not repeated.
func (c *connection) typed(command string) string {
	c.each(func(name, value string) {
		switch name {
		case clientcmd.FlagNamespace, clientcmd.FlagTimeout:
			return
		case clientcmd.FlagBearerToken:
			value = "TOKEN"
		}
		command += " --" + name + "=" + quoted(value)
	})
	if c.lasts && c.context != "" && !c.set.Changed(clientcmd.FlagContext) {
		command += " --" + clientcmd.FlagContext + "=" + quoted(c.context)
	}
	return command
}

// each tells all flags that were given, by name.
func (c *connection) each(tell func(name, value string)) {
	c.set.VisitAll(func(flag *pflag.Flag) {
		if !flag.Changed {
			return
		}
		values := []string{flag.Value.String()}
		if list, is := flag.Value.(pflag.SliceValue); is {
			values = list.GetSlice()
		}
		for _, value := range values {
			tell(flag.Name, value)
		}
	})
}

var plain = regexp.MustCompile(`^[A-Za-z0-9_@%+=:,./-]+$`)

// quoted is one word of a shell.
func quoted(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

func (c *connection) loader() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(c.rules, &c.overrides)
}

// namespace is that of -n, else the kubeconfig's.
func (c *connection) namespace() (string, error) {
	namespace, _, err := c.loader().Namespace()
	if err != nil {
		return "", fmt.Errorf("find the namespace: %w", err)
	}
	return namespace, nil
}

// agrees refuses objects of a file that are of another namespace than -n says, as kubectl does.
func (c *connection) agrees(objects []*unstructured.Unstructured) error {
	asked := c.overrides.Context.Namespace
	for _, object := range objects {
		if of := object.GetNamespace(); asked != "" && of != "" && of != asked {
			return fmt.Errorf("%s %s of the file is in namespace %s, and -n says %s: leave -n out, or change the file", object.GetKind(),
				object.GetName(), of, asked)
		}
	}
	return nil
}

// requestTimeout is how long one request may take, unless --request-timeout says otherwise.
const requestTimeout = 30 * time.Second

// Requests a second: a person waits, and a cluster has at most a thousand pods.
const requestsPerSecond, requestsAtOnce = 50, 100

func (c *connection) config() (*rest.Config, error) {
	cfg, err := c.loader().ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the cluster (give --kubeconfig or set KUBECONFIG): %w", err)
	}
	cfg = rest.CopyConfig(cfg)
	cfg.UserAgent = "kubectl-middleware/" + Version
	cfg.QPS, cfg.Burst = requestsPerSecond, requestsAtOnce
	cfg.WarningHandler = rest.NoWarnings{}
	if cfg.Timeout == 0 {
		cfg.Timeout = requestTimeout
	}
	return cfg, nil
}

// cluster is a connection that is made.
type cluster struct {
	client.Client
	read   read.Reader
	config *rest.Config
}

// pin keeps to the context that is chosen now: somebody may choose another one (kubectl config use-context) before kubectl is started.
func (c *connection) pin() error {
	raw, err := c.loader().RawConfig()
	if err != nil {
		return fmt.Errorf("read the kubeconfig: %w", err)
	}
	chosen := cmp.Or(c.overrides.CurrentContext, raw.CurrentContext)
	if _, is := raw.Contexts[chosen]; is {
		c.context, c.overrides.CurrentContext = chosen, chosen
	}
	return nil
}

// open connects, and says which namespace is meant.
func (c *connection) open() (to *cluster, namespace string, err error) {
	if err := c.pin(); err != nil {
		return nil, "", err
	}
	if namespace, err = c.namespace(); err != nil {
		return nil, "", err
	}
	cfg, err := c.config()
	if err != nil {
		return nil, "", err
	}
	known := runtime.NewScheme()
	if err := scheme.AddToScheme(known); err != nil {
		return nil, "", err
	}
	api, err := client.New(cfg, client.Options{Scheme: known})
	if err != nil {
		return nil, "", fmt.Errorf("reach the cluster: %w", err)
	}
	to = &cluster{Client: api, config: cfg, read: read.Reader{Reader: api, Mapper: api.RESTMapper(), Now: time.Now}}
	return to, namespace, nil
}
