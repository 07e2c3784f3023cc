// A DNS server that names as many addresses of a service as a message can carry, all of them this machine.
import assert from "node:assert/strict";
import { createSocket, type Socket as UdpSocket } from "node:dgram";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { describeUpstreams, readServiceRecords } from "../../src/source/service-addresses.ts";

const NAMES = 10_000;
const MESSAGE_BYTES_MAX = 65_535;
const [A, SRV] = [1, 33];
const TRUNCATED = 0x0200;

/** A response to a query with records that point to its name; those beyond the size are left out. */
function answer(query: Buffer, records: readonly Buffer[], flags = 0): Buffer {
  const end = query.indexOf(0, 12) + 5;
  const fit: Buffer[] = [];
  let bytes = end;
  for (const data of records) {
    if (bytes + 12 + data.length > MESSAGE_BYTES_MAX) break;
    bytes += 12 + data.length;
    fit.push(Buffer.concat([Buffer.from([0xc0, 12]), readType(query), describe(data), data]));
  }
  const head = Buffer.from(query.subarray(0, end));
  head.writeUInt16BE(0x8400 | flags, 2);
  head.writeUInt16BE(1, 4);
  head.writeUInt16BE(fit.length, 6);
  head.fill(0, 8, 12);
  return Buffer.concat([head, ...fit]);
}

const readType = (query: Buffer): Buffer => {
  const end = query.indexOf(0, 12) + 1;
  return query.subarray(end, end + 2);
};

/** Class, time of a minute, length. */
function describe(data: Buffer): Buffer {
  return Buffer.from([0, 1, 0, 0, 0, 60, data.length >> 8, data.length & 0xff]);
}

function describeServer(index: number): Buffer {
  const label = Buffer.from(`n${index}`);
  const fixed = Buffer.from([0, 1, 0, 1, 0x1f, 0x90]);
  return Buffer.concat([fixed, Buffer.from([label.length]), label, Buffer.from([1, 0x74, 0])]);
}

/** Starts the server; the number of its queries by kind. */
async function startServer(context: TestContext) {
  const counts = { udp: 0, tcp: 0, addresses: 0 };
  const servers = Array.from({ length: NAMES }, (_, index) => describeServer(index));
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
    const type = readType(query).readUInt16BE(0);
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
  const { addresses, ttlSeconds } = await readServiceRecords("orders", "t", [server], true);
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
