// Writes without the stream's queue: complete, in order, with back pressure and errors as by the stream.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { Socket } from "node:net";
import { test } from "node:test";
import { createDirectWriter } from "@platform/kernel/sockets";
import { acceptOne } from "./accepted-socket.ts";

/** Replaces the stream's `write`, and returns the number of its calls. */
function countStreamWrites(socket: Socket): () => number {
  const write: (bytes: Buffer) => boolean = socket.write.bind(socket);
  let count = 0;
  socket.write = (bytes: unknown) => {
    count++;
    return write(bytes as Buffer);
  };
  return () => count;
}

function fill(size: number, seed: number): Buffer {
  return Buffer.from(Array.from({ length: size }, (_, at) => (at * 7 + seed) % 251));
}

test("messages that the system accepts whole do not pass the stream, but for the first", async () => {
  const { client, accepted } = await acceptOne();
  const writeDirect = createDirectWriter();
  const readStreamWrites = countStreamWrites(accepted);
  for (const text of ["one ", "two ", "three"]) {
    assert.ok(writeDirect(accepted, Buffer.from(text)));
    assert.equal(accepted.writableLength, 0);
  }
  if (process.versions.bun === undefined) assert.equal(readStreamWrites(), 1);
  accepted.end();
  let read = "";
  for await (const chunk of client) read += String(chunk);
  assert.equal(read, "one two three");
  assert.equal(accepted.bytesWritten, read.length);
});

test("a client that reads nothing holds back the stream, and then receives every byte once, in order", async () => {
  const { client, accepted } = await acceptOne();
  client.pause();
  const writeDirect = createDirectWriter();
  const sent: Buffer[] = [];
  const received: Buffer[] = [];
  for (let round = 0; round < 3; round++) {
    for (let seed = 0; accepted.writableLength === 0; seed++) {
      const bytes = fill(300_000, seed);
      sent.push(bytes);
      if (!writeDirect(accepted, bytes)) {
        assert.ok(accepted.writableLength > 0 && accepted.writableNeedDrain);
      }
    }
    const late = fill(1_000, round);
    sent.push(late);
    accepted.write(late);
    client.on("data", (chunk: Buffer) => received.push(chunk)).resume();
    await once(accepted, "drain");
    client.removeAllListeners("data").pause();
    assert.equal(accepted.writableLength, 0);
  }
  const ended = once(client, "end");
  client.on("data", (chunk: Buffer) => received.push(chunk)).resume();
  accepted.end();
  await ended;
  assert.ok(Buffer.concat(received).equals(Buffer.concat(sent)));
});

test("a write to a peer that has reset the connection is an error of the socket", async () => {
  const { client, accepted } = await acceptOne();
  const writeDirect = createDirectWriter();
  writeDirect(accepted, Buffer.from("first"));
  accepted.pause();
  const closed = new Promise((resolve) => accepted.on("close", resolve));
  let code = "";
  accepted.on("error", (error: NodeJS.ErrnoException) => (code = error.code ?? ""));
  client.resetAndDestroy();
  await once(client, "close");
  for (let wait = 0; wait < 6_000 && !accepted.destroyed; wait++) {
    writeDirect(accepted, Buffer.from("later"));
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  await closed;
  assert.match(code, /^(EPIPE|ECONNRESET)$/);
  assert.doesNotThrow(() => writeDirect(accepted, Buffer.from("after the end")));
});
