// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/net/netutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"middleware.hc.cn/operator/internal/plugin/overview"
	"middleware.hc.cn/operator/internal/plugin/read"
	"middleware.hc.cn/operator/internal/plugin/web"
)

func (p *program) web() *cobra.Command {
	everywhere, port := false, uint16(0)
	command := &cobra.Command{
		Use:   "web",
		Short: "a page for the browser: all kinds, RedisClusters with their shards and slots as they change",
		Long: "Serves a page on this machine's loopback interface, with your rights, until you interrupt it. Nothing can be changed there. Its\n" +
			"address has a secret: who knows it sees what you may see.",
		Example: "  kubectl middleware web -n shop",
		Args:    cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error {
			to, namespace, err := p.connection.open()
			if err != nil {
				return err
			}
			if everywhere {
				namespace = ""
			}
			p.connection.lasts = true
			return p.serve(command.Context(), port, source{to: to, connection: p.connection, namespace: namespace})
		},
	}
	command.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "list the objects of all namespaces")
	command.Flags().Uint16Var(&port, "port", 0, "port on 127.0.0.1, 0: one that is free")
	return command
}

// Limits of the server: who is asked is the browser of one person.
const (
	longestHeader = 16 << 10
	headerTimeout = 5 * time.Second
	answerTimeout = time.Minute
	idleTimeout   = time.Minute
	connections   = 32
	farewell      = time.Second
)

// serve serves the page until the context ends.
func (p *program) serve(ctx context.Context, port uint16, from source) error {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(int(port))))
	if err != nil {
		return fmt.Errorf("serve the page (say another port with --port): %w", err)
	}
	_, at, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		return err
	}
	handler := web.New(from, at, from.to.read.Now)
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, WriteTimeout: answerTimeout,
		IdleTimeout: idleTimeout, MaxHeaderBytes: longestHeader}
	for _, line := range []string{handler.URL(), "open it in a browser of this machine; Ctrl-C ends it"} {
		if err := p.say("%s", line); err != nil {
			return err
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(netutil.LimitListener(listener, connections)) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	ctx, end := context.WithTimeout(context.WithoutCancel(ctx), farewell)
	defer end()
	if err := server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return nil
}

// source is where the page looks: the API server, with the rights of the user.
type source struct {
	to         *cluster
	connection *connection
	namespace  string
}

// Where implements web.Source.
func (s source) Where() string {
	namespace := "all namespaces"
	if s.namespace != "" {
		namespace = "namespace " + s.namespace
	}
	return namespace + " at " + cmp.Or(s.to.config.Host, "the API server")
}

// List implements web.Source.
func (s source) List(ctx context.Context) (overview.List, error) {
	seen, err := s.to.read.List(ctx, s.namespace)
	if err != nil {
		return overview.List{}, err
	}
	return overview.ListOf(seen), nil
}

// Cluster implements web.Source.
func (s source) Cluster(ctx context.Context, namespace, name string) (overview.Cluster, error) {
	seen, err := s.to.read.Cluster(ctx, read.Key(namespace, name))
	if err != nil {
		return overview.Cluster{}, missing(err)
	}
	return s.connection.overview(seen), nil
}

// Object implements web.Source.
func (s source) Object(ctx context.Context, kind, namespace, name string) (overview.Object, error) {
	of, _, err := kindOf(kind + "/" + name)
	if err != nil {
		return overview.Object{}, web.NotFoundError{Err: err}
	}
	object, err := s.to.read.Object(ctx, of, read.Key(namespace, name))
	if err != nil {
		return overview.Object{}, missing(err)
	}
	return overview.ObjectOf(object), nil
}

func missing(err error) error {
	if apierrors.IsNotFound(err) {
		return web.NotFoundError{Err: err}
	}
	return err
}
