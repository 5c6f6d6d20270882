// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
)

// resolver tells the digest of an image, such as sha256:0123….
type resolver func(image string) (string, error)

var digestForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// commandResolver runs a command with the image as its last argument.
func commandResolver(command []string) resolver {
	return func(image string) (string, error) {
		arguments := append(slices.Clone(command[1:]), image)
		var output bytes.Buffer
		run := exec.Command(command[0], arguments...) //nolint:gosec // the command is what the caller asked for
		run.Stdout, run.Stderr = &output, os.Stderr
		if err := run.Run(); err != nil {
			return "", fmt.Errorf("%s %s: %w", command[0], strings.Join(arguments, " "), err)
		}
		return strings.TrimSpace(output.String()), nil
	}
}

// pin names every image of a bundle by its digest, so that what runs is what was tested, and so that a mirror of digests suffices.
func pin(bundle string, resolve resolver) error {
	c, err := readCSV(bundle)
	if err != nil {
		return err
	}
	objects, err := c.containers()
	if err != nil {
		return err
	}
	related, err := maps(c.object.Object, "spec", "relatedImages")
	if err != nil {
		return err
	}
	pins := pins{resolve: resolve, known: map[string]string{}}
	for _, object := range append(objects, related...) {
		image, _ := object["image"].(string)
		if object["image"], err = pins.of(image); err != nil {
			return err
		}
	}
	manager, err := c.manager()
	if err != nil {
		return err
	}
	variables, err := imageVariables(manager)
	if err != nil {
		return err
	}
	for _, variable := range variables {
		image, _ := variable["value"].(string)
		pinned, err := pins.of(image)
		if err != nil {
			return err
		}
		variable["value"] = withTagOf(image, pinned)
	}
	c.annotate(containerImage, manager["image"].(string))
	return c.write()
}

// pins remembers digests, so that an image which is named twice is asked for once.
type pins struct {
	resolve resolver
	known   map[string]string
}

func (p pins) of(image string) (string, error) {
	if strings.Contains(image, "@") {
		return image, nil
	}
	if pinned, ok := p.known[image]; ok {
		return pinned, nil
	}
	digest, err := p.resolve(image)
	if err != nil {
		return "", fmt.Errorf("digest of %s: %w", image, err)
	}
	if !digestForm.MatchString(digest) {
		return "", fmt.Errorf("digest of %s: %q is not of the form sha256:<64 hex digits>", image, digest)
	}
	p.known[image] = withoutTag(image) + "@" + digest
	return p.known[image], nil
}

// withTagOf puts the tag of an image into the same one by digest. Who runs it looks at the digest alone; the operator knows the
// engine's version by the tag. (Tools that mirror want no tag in relatedImages.)
func withTagOf(image, pinned string) string {
	if strings.Contains(image, "@") {
		return image
	}
	repository := withoutTag(image)
	return image + strings.TrimPrefix(pinned, repository)
}

// withoutTag removes what follows the last colon, unless that is the port of the registry.
func withoutTag(image string) string {
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i]
	}
	return image
}
