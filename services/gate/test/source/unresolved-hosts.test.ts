// Hosts of SRV records that cannot be resolved: the others are used, and those that were known stay.
import assert from "node:assert/strict";
import { createSocket } from "node:dgram";
import { once } from "node:events";
import { test, type TestContext } from "node:test";
import { readServiceRecords, type ServiceAddress } from "../../src/source/service-addresses.ts";
import {
  A,
  answer,
  describeServer,
  FAILED,
  readName,
  readType,
  SRV,
} from "../fixture/dns-answers.ts";

const HOSTS = ["one.t", "two.t", "three.t"];

/** Starts a server of the hosts, each of which has an address while it is not among the `failed`. */
async function startServer(context: TestContext, failed: ReadonlySet<string>) {
  const socket = createSocket("udp4");
  socket.on("message", (query, { port, address }) => {
    const name = readName(query);
    const type = readType(query);
    const here = type === A ? [Buffer.from([127, 0, 0, 1 + HOSTS.indexOf(name)])] : [];
    const records = type === SRV ? HOSTS.map(describeServer) : here;
    socket.send(
      failed.has(name) ? answer(query, [], FAILED) : answer(query, records),
      port,
      address,
    );
  });
  socket.bind(0, "127.0.0.1");
  context.after(() => socket.close());
  await once(socket, "listening");
  return { host: "127.0.0.1", port: socket.address().port };
}

const list = (addresses: readonly ServiceAddress[]): string[] =>
  addresses.flatMap((address) => (address.kind === "record" ? address.resolved : [])).sort();

test("a host that cannot be resolved takes no other one away, and keeps its last address", async (context) => {
  const failed = new Set(["two.t"]);
  const server = await startServer(context, failed);
  const options = { name: "orders", domain: "t", servers: [server], resolvesNames: true };
  const first = await readServiceRecords(options);
  assert.deepEqual(list(first.addresses), ["127.0.0.1:8080", "127.0.0.3:8080"]);
  assert.match(first.fault ?? "", /^two\.t: the server answers with code 2/);
  assert.ok(first.ttlSeconds <= 10, `asked again in ${first.ttlSeconds} s`);

  failed.clear();
  const whole = await readServiceRecords(options);
  const all = ["127.0.0.1:8080", "127.0.0.2:8080", "127.0.0.3:8080"];
  assert.deepEqual([list(whole.addresses), whole.fault], [all, undefined]);
  assert.equal(whole.ttlSeconds, 60);

  failed.add("three.t");
  const later = await readServiceRecords({ ...options, known: whole.addresses });
  assert.deepEqual(list(later.addresses), all);
  assert.match(later.fault ?? "", /^three\.t: /);

  for (const host of HOSTS) failed.add(host);
  await assert.rejects(readServiceRecords(options), /^DnsError: \w+\.t: the server answers/);
});
