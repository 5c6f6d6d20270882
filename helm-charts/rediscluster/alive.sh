#!/bin/sh
# What the kubelet runs in a Redis container with two ports to see whether it is alive: while TLS is switched, now the one is
# open, now the other. As for a probe that connects, an open port is enough, whatever Redis is busy with; 256 connections that
# wait to be accepted are too many. Nobody is connected to, so that no TLS is needed, and no queue gets longer by it.
#
# The kernel lists a socket as number, own address:port, other address:port, state (0A: it listens), and what waits to be
# sent and received, all in hexadecimal; 6379 is 18EB.
#
# Nothing in it comes from a custom resource.

exec grep -qsE '^ *[0-9]+: [0-9A-F]+:18E[BC] [0-9A-F]+:0000 0A [0-9A-F]+:000000' /proc/net/tcp /proc/net/tcp6
