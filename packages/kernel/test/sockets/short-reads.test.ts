// Reads without the stream's queue: complete, in order, with pause and end.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, createServer, type AddressInfo, type Socket } from "node:net";
import { afterEach, test } from "node:test";
import { createReadShortener } from "@platform/kernel/sockets";

const READ_BYTES = 4_096;
const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/** Accepted sockets with one shared buffer, and their clients. */
async function acceptTwo(): Promise<{ client: Socket; accepted: Socket; taken: Buffer[] }[]> {
  const shorten = createReadShortener(Buffer.alloc(READ_BYTES));
  const server = createServer();
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  stops.push(() => server.close());
  const pairs = [];
  for (let index = 0; index < 2; index++) {
    const connection = once(server, "connection") as Promise<[Socket]>;
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const [accepted] = await connection;
    stops.push(() => client.destroy());
    const taken: Buffer[] = [];
    accepted.on("data", (chunk: Buffer) => taken.push(chunk));
    shorten(accepted, (bytes, length, isShared) => {
      taken.push(isShared ? Buffer.from(bytes.subarray(0, length)) : bytes);
    });
    pairs.push({ client, accepted, taken });
  }
  return pairs;
}

function sizeOf(chunks: readonly Buffer[]): number {
  return chunks.reduce((size, chunk) => size + chunk.length, 0);
}

test("bytes of several sockets arrive completely and in order through one buffer, then their ends", async () => {
  const pairs = await acceptTwo();
  const sent = pairs.map((_, index) =>
    Buffer.from(Array.from({ length: 50_000 }, (_, at) => (at * 7 + index) % 251)),
  );
  const ended = pairs.map(({ accepted }) => once(accepted, "end"));
  for (const [index, { client }] of pairs.entries()) client.end(sent[index]!);
  await Promise.all(ended);
  for (const [index, { taken }] of pairs.entries()) {
    assert.ok(Buffer.concat(taken).equals(sent[index]!));
  }
});

test("a paused socket is not read until it is resumed", async () => {
  const [pair] = await acceptTwo();
  const { client, accepted, taken } = pair!;
  client.write("first");
  while (sizeOf(taken) < 5) await new Promise((resolve) => setTimeout(resolve, 5));
  accepted.pause();
  const size = 20_000_000;
  const isWhole = new Promise<boolean>((resolve) => {
    client.write(Buffer.alloc(size, "x"), () => resolve(true));
  });
  const quiet = new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 200));
  assert.equal(await Promise.race([isWhole, quiet]), false, "more was taken than buffers hold");
  assert.ok(sizeOf(taken) <= 5 + READ_BYTES, "a read may have been under way");
  accepted.resume();
  await isWhole;
  while (sizeOf(taken) < size + 5) await new Promise((resolve) => setTimeout(resolve, 5));
});
