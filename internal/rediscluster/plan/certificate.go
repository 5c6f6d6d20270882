// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "time"

// RecordCertificate writes down that there is going to be a Certificate of the operator's, so that it is not left behind by an operator
// that stops.
type RecordCertificate struct{ base }

// ApplyCertificate makes the Certificate be as it is rendered, or go when it is not any more. Its names are those of Services: they are
// made first, so that a certificate for somebody else's name is never asked for.
type ApplyCertificate struct{ base }

// Name implements Step.
func (RecordCertificate) Name() string { return "RecordCertificate" }

// Name implements Step.
func (ApplyCertificate) Name() string { return "ApplyCertificate" }

// planNeededCertificate comes before what needs a certificate, while instances cannot be reached without one. Where they can, what heals
// comes first: cert-manager may be away.
func planNeededCertificate(in input) Step {
	if in.snap.TLS.Known {
		return nil
	}
	return planCertificate(in)
}

// planCertificate has the Certificate be as it is rendered.
func planCertificate(in input) Step {
	switch {
	case in.pending.Certificate == "":
		return nil
	case in.snap.Certificate == "":
		return RecordCertificate{base{"the Certificate " + in.pending.Certificate + " is to be made"}}
	}
	return ApplyCertificate{base{"the Certificate " + in.pending.Certificate + " is not as spec.tls asks for"}}
}

// certificateLags reports whether a step is about the Certificate of a cluster that has a certificate, which nothing is wrong with.
func (in input) certificateLags(step Step) bool {
	return in.snap.TLS.Known && (Is[RecordCertificate](step) || Is[ApplyCertificate](step))
}

// untilIssued is how soon to look again for a certificate that is being made.
const untilIssued = time.Second
