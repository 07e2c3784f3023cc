// A DNS server that names as many addresses of a service as a message can carry, all of them this machine.
import assert from "node:assert/strict";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { A, answer, describeServer, readType, SRV, TRUNCATED } from "../fixture/dns-answers.ts";
import { describeUpstreams, readServiceRecords } from "../../src/source/service-addresses.ts";

const NAMES = 10_000;

/** Starts the server; the number of its queries by kind. */
async function startServer(context: TestContext) {
  const counts = { udp: 0, tcp: 0, addresses: 0 };
  const servers = Array.from({ length: NAMES }, (_, index) => describeServer(`n${index}.t`));
  const tcp = createServer((socket) => {
    socket.on("error", () => socket.destroy());
    socket.once("data", (bytes) => {
      counts.tcp++;
      // The answer does not fit here, either.
      const message = answer(Buffer.from(bytes).subarray(2), servers, TRUNCATED);
      socket.end(
        Buffer.concat([Buffer.from([message.length >> 8, message.length & 0xff]), message]),
      );
    });
  }).listen(0, "127.0.0.1");
  context.after(() => tcp.close());
  await once(tcp, "listening");
  const { port } = tcp.address() as AddressInfo;
  const udp: UdpSocket = createSocket("udp4");
  udp.on("message", (query, { port: from, address }) => {
    const type = readType(query);
    if (type === SRV) counts.udp++;
    else counts.addresses++;
    const here = type === A ? [Buffer.from([127, 0, 0, 1])] : [];
    const response = type === SRV ? answer(query, [], TRUNCATED) : answer(query, here);
    udp.send(response, from, address);
  });
  udp.bind(port, "127.0.0.1");
  context.after(() => udp.close());
  await once(udp, "listening");
  return { counts, server: { host: "127.0.0.1", port } };
}

test("of ten thousand names, 256 are resolved and used", async (context) => {
  const { counts, server } = await startServer(context);
  const { addresses, ttlSeconds } = await readServiceRecords({
    name: "orders",
    domain: "t",
    servers: [server],
    resolvesNames: true,
  });
  assert.equal(addresses.length, 256);
  assert.equal(ttlSeconds, 60);
  assert.deepEqual({ udp: counts.udp, tcp: counts.tcp }, { udp: 1, tcp: 1 });
  assert.ok(counts.addresses <= 2 * 256 + 8, `${counts.addresses} queries for addresses`);
  // All of them are one place.
  const place = { name: "orders", path: "", scheme: "http" } as const;
  const upstreams = describeUpstreams(place, addresses);
  assert.deepEqual(
    upstreams.map(({ url }) => url),
    ["http://127.0.0.1:8080"],
  );
});
