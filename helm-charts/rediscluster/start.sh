#!/bin/sh
# What the Redis container runs: the server that its arguments name. A master that has ended
# without being asked to (a crash, a lack of memory) first lets a replica take over that
# followed it to its end, and then starts as that one's replica.
#
# It would be back within a second, before anyone has noticed, and its replicas would copy
# what is in its append-only file. That may lack the writes of the last two seconds: while a
# slow disk syncs what was written before, Redis only keeps them in memory (appendfsync
# everysec, flushAppendOnlyFile in aof.c). Replicas have them, and have said so (WAIT).
# Besides, a master that has started refuses writes for two seconds, and a replica that is
# elected does not.
#
# Nothing in it comes from a custom resource.

# A pod that has TLS at 6379 keeps it there when redis.conf moves it to 6380, until it is replaced by one with two ports,
# whose template says so: its probes and the Service look for it there.
if [ "$1" = --two-ports ]; then shift; elif
  grep -q '^port "0"' /etc/redis/redis.conf 2>/dev/null && grep -q '^tls-port "6380"' /etc/redis/redis.conf
then
  set -- "$@" --tls-port 6379 --cluster-announce-port 0 --cluster-announce-tls-port 0 --cluster-announce-bus-port 0
fi

trap 'exit 0' TERM # a shell that is process 1 would not end

# now prints seconds that no change of the clock moves.
now() { read -r uptime _ </proc/uptime && echo "${uptime%.*}"; }

# One server in a directory, also while a pod is only said to be gone. The server inherits this lock and holds it until it ends; its
# own, of nodes.conf, newer engines lose with the first file that they put in its place. Nobody removes this file. Without flock, or
# where the file cannot be written, nothing is locked; a server that cannot lock nodes.conf ends, so no directory is without locks.
lock=/data/.lock free=127 longest=60
if (: >>"$lock") 2>/dev/null; then
  exec 9>>"$lock" # for writing: NFS locks no other
  until=
  while
    flock -n 9 2>/dev/null
    free=$?
    [ "$free" = 1 ] # held; anything else says that files are not locked here
  do
    if [ -z "$until" ]; then
      echo "start.sh: a server of a former container or pod runs in this directory still (it holds $lock): this one waits for its end"
      until=$(($(now) + longest))
    fi
    if [ "$(now)" -ge "$until" ]; then
      echo "start.sh: $lock is held after $longest s: no second server is started in this directory" >&2
      exit 1
    fi
    sleep 1
  done
fi

nodes=/data/nodes.conf
[ -r "$nodes" ] || exec "$@"

# What this instance was: a master with slots (id), one of so many. Fewer than three cannot elect
# anyone without it: then it appoints its successor itself, without a vote.
id= masters=0
while read -r node _ flags _ _ _ _ _ slots; do
  case $flags in *master*) ;; *) continue ;; esac
  [ -n "$slots" ] || continue
  masters=$((masters + 1))
  case $flags in *myself*) id=$node ;; esac
done <"$nodes"
[ -n "$id" ] || exec "$@"
few= mode=FORCE
if [ "$masters" -lt 3 ]; then
  few=yes mode=TAKEOVER
  # Nobody votes, so it must be certain that no server of this directory runs; one that a former start.sh has started may hold
  # nodes.conf alone.
  if [ "$free" != 0 ] || ! flock -n "$nodes" sleep 0; then exec "$@"; fi
fi

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

# redis asks the instance at an address, where it listens to this port without a certificate.
redis() {
  options=$(way "$1") || return 1
  ip=$1 port=$2
  shift 2
  # shellcheck disable=SC2086 # the options are words
  timeout 1 redis-cli --raw -h "$ip" -p "$port" $options "$@" </dev/null 2>/dev/null
}

# replicas prints its replicas, by node ID, as "id ip port flags". With TLS newer engines write 0 for
# the port that is not encrypted.
replicas() {
  sort "$nodes" | while read -r node address flags master _; do
    [ "$master" = "$id" ] || continue
    address=${address%%@*}
    port=${address##*:}
    [ "$port" != 0 ] || port=6379
    echo "$node ${address%:*} $port $flags"
  done
}

# self prints the node ID of who answers at an address, and that of its master; "-" of a master.
self() { redis "$1" "$2" CLUSTER NODES | sed -n 's/^\([^ ]*\) [^ ]* [^ ]*myself[^ ]* \([^ ]*\) .*/\1 \2/p'; }

# written is when it last wrote data to its disk; 0 when it never did.
written=$(stat -c %Y /data/*.rdb /data/*.aof /data/*/*.rdb /data/*/*.aof 2>/dev/null | sort -n | tail -n 1)
written=${written:-0}

# field prints the value of a line of INFO, which is its standard input.
field() { tr -d '\r' | sed -n "s/^$1://p"; }

# successor prints the address of the replica that has received most, of those that followed
# this instance to its end: they lost it in this process of theirs, and not before it last
# wrote (by whole seconds of two clocks). It prints "elected" when one has taken over already.
# Offsets of two histories are not compared: the first by node ID stands for its own.
# An address may be another cluster's by now: who answers must be that replica, and follow this instance. Where
# nobody votes, two that choose must choose the same (the operator may, too): the first by node ID of those that have most, and
# nobody if one follows another. There it prints "later" while one has a link, or does not answer and was not lost before, or
# none answers at all: one may have been appointed meanwhile, and who starts alone takes writes that are lost.
successor() {
  best= most=-1 history='' later='' heard='' lost='' other=''
  while read -r node ip port flags; do
    case $(self "$ip" "$port") in
    "$node $id") heard=yes ;;
    "$node -")
      echo elected
      return
      ;;
    "$node "*)
      other=$few
      continue
      ;;
    *)
      case ,$flags, in *,fail,*) lost=yes ;; *) later=$few ;; esac
      continue
      ;;
    esac
    info=$(redis "$ip" "$port" INFO replication)
    if [ -n "$few" ]; then
      case $(echo "$info" | field master_link_status) in down) ;; *) later=yes ;; esac # it has not noticed yet, or does not say
    fi
    since=$(echo "$info" | field master_link_down_since_seconds)
    offset=$(echo "$info" | field slave_repl_offset)
    [ "${since:--1}" -ge 0 ] && [ $(($(date +%s) - since)) -ge $((written - 2)) ] || continue
    of=$(echo "$info" | field master_replid)
    [ "${offset:--1}" -gt "$most" ] && [ "$of" = "${history:-$of}" ] || continue
    best="$ip $port" most=$offset history=$of
  done
  if [ -n "$few" ] && [ -n "$lost" ] && [ -z "$heard" ]; then later=yes; fi
  if [ -n "$later" ]; then best=later; elif [ -n "$other" ]; then best=''; fi
  echo "$best"
}

# Twice the node timeout is what an election without help may take.
timeout=$(sed -n 's/^cluster-node-timeout "\{0,1\}\([0-9]*\).*/\1/p' /etc/redis/redis.conf 2>/dev/null)
most=$((2 * ${timeout:-5000} / 1000 + 5))
[ "$most" -le 60 ] || most=60
until=$(($(now) + most)) again=0 asked='' told=''
while time=$(now) && [ "$time" -lt "$until" ]; do
  found=$(replicas | successor)
  [ "$found" != elected ] || break
  # Who was told and does not answer may do it yet: what this instance took meanwhile would be lost. Without a vote no other is
  # told, which might do it as well.
  if [ -n "$asked" ] && [ "$found" != "$asked" ] && [ -n "$few" ]; then found=later; fi
  if [ -n "$asked" ] && [ -z "$found" ]; then found=later; fi
  [ -n "$found" ] || break
  if [ "$found" = later ]; then
    if [ -z "$told$asked" ]; then echo "start.sh: this was a master; it asks its replicas for $most s at most what has become of them"; fi
    told=yes
    sleep 0.1
    continue
  fi
  if [ "$time" -ge "$again" ]; then
    echo "start.sh: this was a master; its replica at $found, which followed it to its end, takes over first"
    # Without FORCE it would ask this instance, and without asking it would wait for the node timeout. The masters vote all the same.
    # This instance is the only one that might write, and does not run: where nobody votes, that is proof enough.
    redis "${found% *}" "${found#* }" CLUSTER FAILOVER "$mode" >/dev/null
    again=$((time + 3)) asked=$found
  fi
  sleep 0.1
done
unset REDISCLI_AUTH REDISCLI_HISTFILE
exec "$@"
