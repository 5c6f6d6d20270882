// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

// A writer is the least program that settles custom resources, to see what the API server allows: it watches custom resources, and makes
// the writes that an operator has to make for each, one after the other, with bodies from fixed texts. It renders, reads, compares and
// repairs nothing.
const (
	// sevenWrites are those of this operator: an inventory, the three children, a record of the release, the status, an Event.
	sevenWrites = "seven-writes"
	// fiveWrites are the fewest of an operator that keeps Helm's records: the three children, the record, the status.
	fiveWrites = "five-writes"
)

func writerOf(name string) contender {
	return contender{name: name, settleOnly: true,
		binary: func(options) string { return "/proc/self/exe" },
		arguments: func(o options, _ string, a addresses) []string {
			return []string{name, strconv.Itoa(o.workers), a.metrics, a.health}
		},
	}
}

// isWriter reports whether this process is to be a writer.
func isWriter(arguments []string) bool {
	return len(arguments) == 5 && (arguments[1] == sevenWrites || arguments[1] == fiveWrites)
}

// writer makes the writes of custom resources in a namespace.
type writer struct {
	client    *http.Client
	host      string
	namespace string
	seven     bool
	record    string // of a release, as Helm's storage has it
}

// write is a request to the API server.
type write struct {
	method, path, contentType, body string
}

// runWriter is a writer until it is killed.
func runWriter(arguments []string) error {
	workers, err := strconv.Atoi(arguments[2])
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	if err != nil {
		return err
	}
	config.QPS = -1
	w := &writer{host: config.Host, namespace: os.Getenv("WATCH_NAMESPACE"), seven: arguments[1] == sevenWrites}
	if w.client, err = rest.HTTPClientFor(config); err != nil {
		return err
	}
	if w.record, err = newRecord(); err != nil {
		return err
	}
	if err := w.follow(config, workers); err != nil {
		return err
	}
	http.Handle("/metrics", promhttp.Handler())
	http.HandleFunc("/readyz", func(http.ResponseWriter, *http.Request) {})
	failed := make(chan error, 2)
	for _, address := range arguments[3:] {
		server := &http.Server{Addr: address, ReadHeaderTimeout: time.Minute}
		go func() { failed <- server.ListenAndServe() }()
	}
	return <-failed
}

// follow settles every custom resource that is created from now on.
func (w *writer) follow(config *rest.Config, workers int) error {
	resources, err := dynamic.NewForConfigAndClient(config, w.client)
	if err != nil {
		return err
	}
	created := make(chan *unstructured.Unstructured, 1<<16)
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(resources, 0, w.namespace, nil)
	informer := factory.ForResource(webs).Informer()
	if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(o any) {
		if web, ok := o.(*unstructured.Unstructured); ok {
			created <- web
		}
	}}); err != nil {
		return err
	}
	factory.Start(context.Background().Done())
	if !cache.WaitForCacheSync(context.Background().Done(), informer.HasSynced) {
		return errors.New("cannot watch custom resources")
	}
	for range workers {
		go func() {
			for web := range created {
				for _, one := range w.writes(web) {
					if err := w.do(one); err != nil {
						fmt.Fprintln(os.Stderr, err) // the custom resource does not settle, and the bench says so
						break
					}
				}
			}
		}()
	}
	return nil
}

func (w *writer) do(one write) error {
	request, err := http.NewRequestWithContext(context.Background(), one.method, w.host+one.path, strings.NewReader(one.body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", one.contentType)
	answer, err := w.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", one.method, one.path, answer.Status, text)
	}
	return err
}

// writes are what a custom resource takes.
func (w *writer) writes(web *unstructured.Unstructured) []write {
	name := web.GetName()
	text, _, _ := unstructured.NestedString(web.Object, "spec", "text")
	owner := fmt.Sprintf(`{"apiVersion":%q,"kind":%q,"name":%q,"uid":%q,"controller":true,"blockOwnerDeletion":true}`,
		kind.GroupVersion(), kind.Kind, name, web.GetUID())
	selector := fmt.Sprintf(`{"app.kubernetes.io/name":"web","app.kubernetes.io/instance":%q}`, name)
	meta := fmt.Sprintf(`"metadata":{"name":%q,"labels":{"helm.sh/chart":"web-1.0.0","app.kubernetes.io/name":"web",`+
		`"app.kubernetes.io/instance":%q,"app.kubernetes.io/version":"1"},"ownerReferences":[%s]}`, name, name, owner)
	apply := func(base, resource, body string) write {
		path := fmt.Sprintf("%s/namespaces/%s/%s/%s?fieldManager=writer&force=true", base, w.namespace, resource, name)
		return write{http.MethodPatch, path, "application/apply-patch+yaml", body}
	}
	status := func(body string) write {
		path := fmt.Sprintf("/apis/%s/namespaces/%s/webs/%s/status", kind.GroupVersion(), w.namespace, name)
		return write{http.MethodPatch, path, "application/merge-patch+json", `{"status":` + body + `}`}
	}
	inventory := fmt.Sprintf(`"resources":[{"kind":"ServiceAccount","name":%q},{"kind":"Service","name":%q},{"kind":"Deployment","name":%q}]`,
		name, name, name)
	now := time.Now().UTC().Format(time.RFC3339)
	list := []write{
		apply("/api/v1", "serviceaccounts", `{"apiVersion":"v1","kind":"ServiceAccount",`+meta+`}`),
		apply("/api/v1", "services", fmt.Sprintf(`{"apiVersion":"v1","kind":"Service",%s,"spec":{"ports":[{"name":"http","port":80,`+
			`"targetPort":"http","protocol":"TCP"}],"selector":%s}}`, meta, selector)),
		apply("/apis/apps/v1", "deployments", fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment",%s,"spec":{"replicas":1,`+
			`"selector":{"matchLabels":%s},"template":{"metadata":{"labels":%s},"spec":{"serviceAccountName":%q,`+
			`"securityContext":{"runAsNonRoot":true},"containers":[{"name":"web","image":%q,"env":[{"name":"TEXT","value":%q}],`+
			`"ports":[{"name":"http","containerPort":8080,"protocol":"TCP"}],"readinessProbe":{"httpGet":{"path":"/","port":"http"}},`+
			`"resources":{"requests":{"cpu":"10m","memory":"16Mi"}}}]}}}}`, meta, selector, selector, name, image, text)),
		{http.MethodPost, "/api/v1/namespaces/" + w.namespace + "/secrets", "application/json", fmt.Sprintf(`{"apiVersion":"v1",`+
			`"kind":"Secret","type":"helm.sh/release.v1","metadata":{"name":"sh.helm.release.v1.%s.v1","labels":{"owner":"helm","name":%q,`+
			`"version":"1","status":"deployed"},"ownerReferences":[%s]},"data":{"release":%q}}`, name, name, owner, w.record)},
	}
	if w.seven {
		list = append([]write{status(`{` + inventory + `}`)}, append(list,
			write{http.MethodPost, "/api/v1/namespaces/" + w.namespace + "/events", "application/json", fmt.Sprintf(`{"apiVersion":"v1",`+
				`"kind":"Event","metadata":{"generateName":"%s."},"involvedObject":{"apiVersion":%q,"kind":%q,"namespace":%q,"name":%q,"uid":%q},`+
				`"type":"Normal","reason":"Installed","message":"installed web-1.0.0","count":1,"firstTimestamp":%q,"lastTimestamp":%q}`,
				name, kind.GroupVersion(), kind.Kind, w.namespace, name, web.GetUID(), now, now)})...)
	}
	return append(list, status(fmt.Sprintf(`{%s,"observedGeneration":1,"conditions":[{"type":"Deployed","status":"True","reason":`+
		`"InstallSuccessful","lastTransitionTime":%q}]}`, inventory, now)))
}

// newRecord is a record with the chart's files in it, as a release has them.
func newRecord() (string, error) {
	text, err := json.Marshal(chartFiles)
	if err != nil {
		return "", err
	}
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write(text); err != nil {
		return "", err
	}
	if err := z.Close(); err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString(packed.Bytes()))), nil
}
