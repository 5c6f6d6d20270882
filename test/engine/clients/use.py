"""Uses a cluster through redis-py, and prints which instances the client knows, as JSON. The argument is that of use.cjs."""

import json
import socket
import sys

from redis.cluster import ClusterNode, RedisCluster

lookup = socket.getaddrinfo
# Names of the example lead to this machine.
socket.getaddrinfo = lambda name, *rest, **more: lookup("127.0.0.1" if str(name).endswith(".example.com") else name, *rest, **more)

asked = json.loads(sys.argv[1])
prefix = asked["prefix"]
tls = {"ssl": True, "ssl_ca_certs": asked["ca"], "ssl_check_hostname": True} if asked["ca"] else {}


def check(value, want, what):
    if value != want:
        raise SystemExit(f"{what} is {value}, want {want}")


cluster = RedisCluster(startup_nodes=[ClusterNode(*seed) for seed in asked["seeds"]], password=asked["password"], decode_responses=True, **tls)
for i in range(100):
    cluster.set(f"{prefix}:{i}", i)
for i in range(100):
    check(cluster.get(f"{prefix}:{i}"), str(i), "a value")
pipeline = cluster.pipeline()
for i in range(100):
    pipeline.get(f"{prefix}:{i}")
check(pipeline.execute(), [str(i) for i in range(100)], "a pipeline")
cluster.incr("{%s}n" % prefix)
check(cluster.eval("return redis.call('INCRBY', KEYS[1], 3)", 1, "{%s}n" % prefix), 4, "a script")
subscription = cluster.pubsub(ignore_subscribe_messages=True)
subscription.subscribe(f"{prefix}:news")
subscription.get_message(timeout=5)  # the confirmation
cluster.publish(f"{prefix}:news", "hello")
message = None
for _ in range(50):
    message = message or subscription.get_message(timeout=0.1)
check(message and message["data"], "hello", "a message")
print(json.dumps([f"{node.host}:{node.port}" for node in cluster.get_nodes()]))
