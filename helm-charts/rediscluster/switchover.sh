#!/bin/sh
# What the kubelet runs in the Redis container before it stops it (preStop): a master switches
# over to a replica that has all its writes, and stays until clients have noticed.
# The operator does the same before a restart of its own; this is for evictions, drains and
# deletions that it did not start, also while it is not running. A replica stays for two
# seconds: so long it takes until every Kubernetes node has heard that the Service does not
# lead to it any more; for longer, up to twelve, while it redirects clients, since it may have
# been the master a moment ago. It ends within 40 s, whoever does not answer, and whatever fails
# here, the instance stops.
#
# Nothing in it comes from a custom resource.

password=/etc/redis/auth/password
if [ -r "$password" ]; then
  REDISCLI_AUTH=$(cat "$password")
  export REDISCLI_AUTH
fi
export REDISCLI_HISTFILE=/dev/null
# way prints the options that lead redis-cli to an instance, the one at an address or this one; nothing is needed without a
# certificate. With one it takes TLS at 6379, or at 6380 beside plain connections: while TLS is switched (spec.tls.mode),
# instances differ, and redis.conf says what most have. Nobody is told a password for that, and nobody at all without TLS
# where that is required.
ca=/etc/redis/tls/ca.crt
way() {
  [ -r "$ca" ] || return 0
  tls="--tls --cacert $ca --cert ${ca%/*}/tls.crt --key ${ca%/*}/tls.key"
  if grep -q '^port "0"' /etc/redis/redis.conf; then set -- "$1" "-p 6379 $tls" "-p 6380 $tls"; else
    set -- "$1" "-p 6380 $tls" "-p 6379" "-p 6379 $tls"
  fi
  host=$1
  shift
  for options; do
    # shellcheck disable=SC2086 # the options are words
    answer=$(unset REDISCLI_AUTH && timeout 1 redis-cli --raw -h "$host" $options PING </dev/null 2>/dev/null)
    if [ -n "$answer" ]; then # an error of the server's is an answer; what the way does not lead to is told on stderr
      echo "$options"
      return 0
    fi
  done
  return 1
}

# now prints seconds that no change of the clock moves.
now() { read -r uptime _ </proc/uptime && echo "${uptime%.*}"; }

# redis asks this instance, other the one at an address, for two seconds at most, and nobody when time is up.
end=$(($(now) + 38)) own=$(way 127.0.0.1)
redis() {
  [ "$(now)" -lt "$end" ] || return 1
  if [ -r "$ca" ] && [ -z "$own" ]; then own=$(way 127.0.0.1) || return 1; fi
  # shellcheck disable=SC2086 # the options are words
  timeout 2 redis-cli --raw $own "$@" </dev/null 2>/dev/null
}
other() {
  [ "$(now)" -lt "$end" ] && options=$(way "$1") || return 1
  address=$1
  shift
  # shellcheck disable=SC2086 # the options are words
  timeout 2 redis-cli --raw -h "$address" $options "$@" </dev/null 2>/dev/null
}

# While it stops it is not elected, and is nobody's successor. Where the operator has said so before, all instances stop (spec.hibernate).
unwilling=cluster-replica-no-failover
all=$(redis CONFIG GET "$unwilling" | tail -n 1)
redis CONFIG SET "$unwilling" yes >/dev/null

# successor prints the address of the replica that has received most (ROLE: master, its
# offset, then address, port and offset of each replica), of those that answer and do not
# stop themselves; nothing if this is no master or has no such replica.
successor() {
  redis ROLE | {
    read -r role && [ "$role" = master ] && read -r _ || return 0
    best= most=-1
    while read -r address && read -r _ && read -r offset; do
      [ "$offset" -gt "$most" ] && [ "$(other "$address" CONFIG GET "$unwilling" | tail -n 1)" = no ] || continue
      best=$address most=$offset
    done
    echo "$best"
  }
}

# affected says that this engine may take a stale message about another one's role for news: Redis
# before 7.4. Valkey tells the version of Redis that it is like, too.
affected() {
  info=$(redis INFO server)
  case $info in *server_name:valkey*) return 1 ;; esac
  case $info in *redis_version:7.[0-3].*) return 0 ;; *) return 1 ;; esac
}

# suppress_pings keeps it from pinging others for most of a second, in which the successor takes over. What
# that one answers before it is promoted might be read after its promotion, and such an engine
# would not know for up to a second who owns its slots, and say so to clients
# (github.com/redis/redis/pull/13055).
suppress_pings() {
  redis CONFIG SET dynamic-hz no hz 1 >/dev/null
  sleep 0.2 # the next round of pings is due already, the one after that in a second
  redis PING >/dev/null # a server that was kept waiting has done it when it answers a new connection
}

# moving says that slots are on their way from or to this master. Its replica may not have heard yet
# who owns the last of them, and would claim them by its higher epoch; their destination would drop the
# keys. The operator moves no more as soon as it sees that the pod stops.
moving() { redis CLUSTER NODES | grep -q 'myself.* \['; }

# followed says that it is a master with replicas.
followed() { redis ROLE | { read -r role && [ "$role" = master ] && read -r _ && read -r _ && read -r _; }; }

# redirected prints how many commands have been answered with MOVED.
redirected() { redis INFO errorstats | grep '^errorstat_MOVED:'; }

# For how many seconds it is quiet: it is no master with a successor, and redirects no client.
# It stops after so many as are needed, or when it has waited long enough.
quiet=0 needed=2 again=0 patient=$(($(now) + 4)) enough=$(($(now) + 12))
while [ "$(now)" -lt "$enough" ]; do
  replica=$(successor)
  if [ -n "$replica" ] && [ "$(now)" -lt "$patient" ] && moving; then
    sleep 0.1
    continue
  fi
  if [ -n "$replica" ]; then
    # The master pauses clients until the replica has everything. An attempt that does not
    # succeed within 5 s is given up by Redis; the next one begins.
    if [ "$(now)" -ge "$again" ]; then
      if affected; then suppress_pings; fi
      other "$replica" CLUSTER FAILOVER >/dev/null
      again=$(($(now) + 5))
    fi
    quiet=0 needed=3 enough=$((end - 7))
    sleep 0.1
    continue
  fi
  if [ "$all" = yes ] && followed; then
    sleep 0.1 # the last one of its shard to stop
    continue
  fi
  [ "$quiet" -lt "$needed" ] || break
  before=$(redirected)
  sleep 1
  if [ "$(redirected)" = "$before" ]; then quiet=$((quiet + 1)); else quiet=0; fi
done
exit 0
