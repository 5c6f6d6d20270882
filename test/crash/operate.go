// Copyright 2026 The Middleware Operator Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import "sync"

// Operator is a succession of processes: where one ends, the next begins.
type Operator struct {
	quit    chan struct{}
	running sync.WaitGroup
	stop    func()

	mu      sync.Mutex
	process *Process
	former  *Process // one that was stopped, and goes on beside its successor
}

// Operate runs an operator until it is stopped. Start begins a process, and returns what ends it and waits for that; an error is told
// and ends it all.
func (k *Killer) Operate(start func(*Process) (end func(), err error), tell func(error)) *Operator {
	o := &Operator{quit: make(chan struct{})}
	o.stop = sync.OnceFunc(func() { close(o.quit) })
	o.running.Go(func() {
		endFormer := func() {}
		defer func() { endFormer() }()
		for {
			process := k.Begin()
			o.mu.Lock()
			o.process = process
			o.mu.Unlock()
			end, err := start(process)
			if err != nil {
				tell(err)
				return
			}
			select {
			case <-process.ended:
				if process.goesOn() == nil {
					end()
					continue
				}
				o.mu.Lock()
				o.former = process
				o.mu.Unlock()
				endFormer = end
			case <-o.quit:
				end()
				return
			}
		}
	})
	return o
}

// Restart ends the present process.
func (o *Operator) Restart() {
	o.mu.Lock()
	process := o.process
	o.process = nil
	o.mu.Unlock()
	if process != nil {
		process.End()
	}
}

// Resume lets a process go on that was stopped, beside its successor; false if there is none.
func (o *Operator) Resume() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.former == nil {
		return false
	}
	close(o.former.stopped)
	o.former = nil
	return true
}

// Stop ends it all, and waits for that.
func (o *Operator) Stop() {
	o.Resume()
	o.stop()
	o.running.Wait()
}
