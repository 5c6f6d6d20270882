// Uses a cluster through a client for Node.js, and prints which instances the client knows, as JSON. The argument is JSON:
// {"client": "ioredis" | "node-redis", "seeds": [["HOST", PORT]], "password": "…", "ca": "FILE or empty", "prefix": "…"}
const dns = require('node:dns');
const fs = require('node:fs');

// Names of the example lead to this machine.
const lookup = dns.lookup;
dns.lookup = (name, options, done) => lookup(name.endsWith('.example.com') ? '127.0.0.1' : name, options, done);

const { client, seeds, password, ca, prefix } = JSON.parse(process.argv[2]);
const tls = ca ? { ca: fs.readFileSync(ca) } : undefined;

function check(is, want, what) {
  if (String(is) !== String(want)) throw new Error(`${what} is ${is}, want ${want}`);
}

async function useIoredis() {
  const { Cluster } = require('ioredis');
  // Names stay names, as the certificate and the port's server names want it.
  const open = () => new Cluster(seeds.map(([host, port]) => ({ host, port })),
    { dnsLookup: (name, done) => done(null, name), clusterRetryStrategy: () => null, redisOptions: { password, tls } });
  const cluster = open(), subscriber = open();
  for (let i = 0; i < 100; i++) await cluster.set(`${prefix}:${i}`, i);
  for (let i = 0; i < 100; i++) check(await cluster.get(`${prefix}:${i}`), i, 'a value');
  const done = await cluster.multi().incr(`{${prefix}}n`).incrby(`{${prefix}}n`, 2).exec();
  check(done.map(([, value]) => value), [1, 3], 'a transaction');
  check(await cluster.eval("return redis.call('INCR', KEYS[1])", 1, `{${prefix}}n`), 4, 'a script');
  const heard = new Promise((resolve) => subscriber.on('message', (_, text) => resolve(text)));
  await subscriber.subscribe(`${prefix}:news`);
  await cluster.publish(`${prefix}:news`, 'hello');
  check(await heard, 'hello', 'a message');
  const nodes = cluster.nodes().map(({ options }) => `${options.host}:${options.port}`);
  cluster.disconnect();
  subscriber.disconnect();
  return nodes;
}

async function useNodeRedis() {
  const { createCluster } = require('redis');
  const secured = tls ? { tls: true, ...tls } : {};
  const cluster = createCluster({ rootNodes: seeds.map(([host, port]) => ({ socket: { host, port, ...secured } })),
    defaults: { password, socket: { ...secured, reconnectStrategy: false } } });
  cluster.on('error', (error) => { throw error; });
  await cluster.connect();
  for (let i = 0; i < 100; i++) await cluster.set(`${prefix}:${i}`, String(i));
  for (let i = 0; i < 100; i++) check(await cluster.get(`${prefix}:${i}`), i, 'a value');
  check(await cluster.multi().incr(`{${prefix}}n`).incrBy(`{${prefix}}n`, 2).exec(), [1, 3], 'a transaction');
  check(await cluster.eval("return redis.call('INCR', KEYS[1])", { keys: [`{${prefix}}n`] }), 4, 'a script');
  let hear;
  const heard = new Promise((resolve) => { hear = resolve; });
  await cluster.subscribe(`${prefix}:news`, hear);
  await cluster.publish(`${prefix}:news`, 'hello');
  check(await heard, 'hello', 'a message');
  const nodes = [...cluster.masters, ...cluster.replicas].map(({ address }) => address);
  await cluster.destroy();
  return nodes;
}

({ ioredis: useIoredis, 'node-redis': useNodeRedis })[client]().then((nodes) => {
  console.log(JSON.stringify(nodes));
  process.exit(0);
}, (error) => {
  console.error(error);
  process.exit(1);
});
