// The reader of the first message of TLS: real ones whole and in pieces, and what is none.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Socket } from "node:net";
import { before, test } from "node:test";
import { connect, type ConnectionOptions } from "node:tls";
import { ClientHelloReader, type HelloReading } from "../../src/tls/client-hello.ts";

function readClientHello(bytes: Buffer): HelloReading {
  return new ClientHelloReader().add(bytes);
}

/** The first bytes that a TLS client of Node sends. */
async function capture(options: ConnectionOptions): Promise<Buffer> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const client = connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...options });
  client.on("error", () => undefined);
  const [socket] = (await once(server, "connection")) as [Socket];
  const [bytes] = (await once(socket, "data")) as [Buffer];
  socket.destroy();
  client.destroy();
  server.close();
  return bytes;
}

let hello: Buffer;
before(async () => {
  hello = await capture({ servername: "One.Test", ALPNProtocols: ["acme-tls/1", "h2"] });
});

const EXPECTED = {
  kind: "hello",
  serverName: "one.test",
  protocols: ["acme-tls/1", "h2"],
  ticketNames: [],
};

/** The same message in records of `bytes`. */
function split(whole: Buffer, bytes: number): Buffer {
  const message = whole.subarray(5);
  const records: Buffer[] = [];
  for (let at = 0; at < message.length; at += bytes) {
    const part = message.subarray(at, at + bytes);
    records.push(Buffer.from([22, 3, 1, part.length >> 8, part.length & 0xff]), part);
  }
  return Buffer.concat(records);
}

test("name and protocols, also without them", async () => {
  assert.deepEqual(readClientHello(hello), EXPECTED);
  const bare = await capture({});
  const nothing = { kind: "hello", serverName: "", protocols: [], ticketNames: [] };
  assert.deepEqual(readClientHello(bare), nothing);
  assert.deepEqual(readClientHello(Buffer.concat([hello, Buffer.from("more")])), EXPECTED);
});

test("byte by byte, and in records of any size", () => {
  for (const whole of [hello, split(hello, 1), split(hello, 3), split(hello, 100)]) {
    const reader = new ClientHelloReader();
    for (let at = 0; at < whole.length - 1; at += 1) {
      assert.equal(reader.add(whole.subarray(at, at + 1)).kind, "incomplete", `${at}`);
    }
    assert.deepEqual(reader.add(whole.subarray(-1)), EXPECTED);
  }
});

test("what is no message of a client is for TLS to answer", () => {
  const change = (at: number, value: number): Buffer => {
    const copy = Buffer.from(hello);
    copy[at] = value;
    return copy;
  };
  const others: Record<string, Buffer> = {
    "plain HTTP": Buffer.from("GET / HTTP/1.1\r\nHost: one.test\r\n\r\n"),
    "an alert": Buffer.from([21, 3, 1, 0, 2, 2, 40]),
    "an empty record": Buffer.from([22, 3, 1, 0, 0]),
    "a record that is too long": Buffer.from([22, 3, 1, 0xff, 0xff]),
    "another message": change(5, 2),
    "a session that is too long": change(5 + 4 + 34, 255),
    "no extensions": Buffer.from([22, 3, 1, 0, 4, 1, 0, 0, 0]),
  };
  for (const [what, bytes] of Object.entries(others)) {
    assert.deepEqual(readClientHello(bytes), { kind: "other" }, what);
  }
  const reader = new ClientHelloReader();
  const long = Buffer.concat([Buffer.from([22, 3, 1, 0x20, 0, 1, 1, 0, 0]), Buffer.alloc(8_188)]);
  assert.equal(reader.add(long.subarray(0, 5_000)).kind, "incomplete");
  assert.equal(reader.add(long.subarray(5_000)).kind, "other", "64 KiB are announced");
  const slow = new ClientHelloReader();
  const many = split(
    Buffer.concat([Buffer.alloc(5), Buffer.from([1, 0, 0x20, 0]), Buffer.alloc(8_192)]),
    1,
  );
  let at = 0;
  while (slow.add(many.subarray(at, at + 1)).kind === "incomplete") at += 1;
  assert.equal(at, 16_384, "no more is kept");
});

test("no change of one byte makes it fail", () => {
  for (let at = 0; at < hello.length; at += 1) {
    for (const value of [0, 1, 127, 255]) {
      const copy = Buffer.from(hello);
      copy[at] = value;
      assert.match(readClientHello(copy).kind, /^(?:hello|other|incomplete)$/);
    }
  }
});
