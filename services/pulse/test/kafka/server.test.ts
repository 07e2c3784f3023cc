// The listener and clients that are slow, wrong or too many.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import { readResponse } from "../../src/kafka/protocol/frame.ts";
import {
  apiVersions,
  fetch,
  heartbeat,
  metadata,
} from "../../src/kafka/protocol/messages/index.ts";
import { FrameReader } from "../../src/kafka/server/frame-reader.ts";
import { ByteBudget } from "@platform/kernel/sockets";
import { fetchBody, fill, isServed, mebibyte, versionsBody } from "./requests.ts";
import { KafkaStage } from "./stage.ts";

function frameOf(...parts: readonly (number | Buffer)[]): Buffer {
  const body = Buffer.concat(
    parts.map((part) => (typeof part === "number" ? Buffer.from([part >> 8, part & 0xff]) : part)),
  );
  const length = Buffer.alloc(4);
  length.writeInt32BE(body.length);
  return Buffer.concat([length, body]);
}

describe("a client that sends invalid requests is disconnected, others are not", () => {
  const zero = Buffer.alloc(4);
  const cases: [name: string, bytes: Buffer, kind: string][] = [
    ["an HTTP request", Buffer.from("GET / HTTP/1.1\r\nhost: x\r\n\r\n"), "malformed"],
    ["a negative length", Buffer.from([0xff, 0xff, 0xff, 0xff]), "malformed"],
    ["a length over the bound", Buffer.from([0x7f, 0, 0, 0]), "malformed"],
    ["an empty frame", frameOf(), "malformed"],
    ["a header that is cut short", frameOf(18, 0), "malformed"],
    ["a body that is cut short", frameOf(12, 0, zero, 0xffff), "malformed"],
    ["a request that does not exist", frameOf(999, 0, zero, 0xffff), "unsupported"],
    ["a version that does not exist", frameOf(12, 90, zero, 0xffff), "unsupported"],
    ["a negative version", frameOf(3, 0xffff, zero, 0xffff), "unsupported"],
  ];
  for (const [name, bytes, kind] of cases) {
    test(name, async () => {
      await using stage = await KafkaStage.open();
      const other = await stage.connect();
      const client = await stage.connect();
      client.sendRaw(bytes);
      assert.equal(await client.readFrame(), undefined);
      assert.deepEqual(
        stage.faults.map((fault) => fault.kind),
        [kind],
      );
      assert.ok(await isServed(other));
    });
  }
});

test("ApiVersions of an unknown version is answered in version 0 with the supported versions", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  client.sendRaw(frameOf(18, 77, Buffer.from([0, 0, 0, 5]), 0xffff, Buffer.from([9, 9, 9])));
  const answer = readResponse((await client.readFrame())!, apiVersions, 0);
  assert.equal(answer.correlationId, 5);
  assert.equal(answer.body.errorCode, ERROR_CODES.unsupportedVersion);
  assert.deepEqual(answer.body.apiKeys, [{ apiKey: 18, minVersion: 0, maxVersion: 4 }]);
  assert.ok(await isServed(client));
});

test("pipelined requests are answered in order, also after a waiting one", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  await client.ask(metadata, 12, { topics: [{ name: "empty" }] });
  const first = client.send(fetch, 11, fetchBody("empty", 300));
  const others = Array.from({ length: 200 }, () => client.send(apiVersions, 3, versionsBody));
  const order: number[] = [];
  for (let index = 0; index < 201; index++) {
    order.push((await client.readFrame())!.readInt32BE(0));
  }
  assert.deepEqual(order, [first, ...others]);
});

test("a request that arrives byte by byte is answered", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  for (const byte of frameOf(18, 0, Buffer.alloc(4), 0xffff)) {
    client.sendRaw(Buffer.from([byte]));
    await sleep(1);
  }
  assert.ok((await client.readFrame())!.length > 10);
});

test("connections over the limit are closed; others are served when one closes", async () => {
  await using stage = await KafkaStage.open({ limits: { connectionsMax: 2 } });
  const [one, two] = [await stage.connect(), await stage.connect()];
  assert.ok((await isServed(one)) && (await isServed(two)));
  const third = await stage.connect();
  assert.equal(await third.readFrame(), undefined);
  assert.ok(stage.server.refusedCount > 0);
  one.socket.destroy();
  while (stage.server.connectionCount > 1) await sleep(10);
  assert.ok(await isServed(await stage.connect()));
});

test("connections of one address over its limit are closed, those of others are served", async () => {
  await using stage = await KafkaStage.open({ limits: { connectionsPerAddressMax: 2 } });
  const [one, two] = [await stage.connect(), await stage.connect()];
  assert.ok((await isServed(one)) && (await isServed(two)));
  const third = await stage.connect();
  assert.equal(await third.readFrame(), undefined);
  assert.equal(stage.server.refusedCount, 1);
  // All of 127.0.0.0/8 is this machine.
  const other = connect({ port: stage.port, host: "127.0.0.1", localAddress: "127.0.0.2" });
  await once(other, "connect");
  while (stage.server.connectionCount < 3) await sleep(10);
  other.destroy();
  one.socket.destroy();
  while (stage.server.connectionCount > 1) await sleep(10);
  assert.ok(await isServed(await stage.connect()));
});

test("an idle connection is closed, one that waits for an answer is not", async () => {
  await using stage = await KafkaStage.open({
    limits: { idleTimeoutMs: 1_500, stallTimeoutMs: 1_000 },
  });
  const waiting = await stage.connect();
  await waiting.ask(metadata, 12, { topics: [{ name: "empty" }] });
  const idle = await stage.connect();
  const half = await stage.connect();
  half.sendRaw(Buffer.from([0, 0, 0, 50, 1]));
  const fetched = waiting.ask(fetch, 11, fetchBody("empty", 4_000));
  assert.equal(await half.readFrame(), undefined);
  assert.equal(await idle.readFrame(), undefined);
  assert.equal((await fetched).errorCode, 0);
});

test("a connection that sends nothing, or never authenticates, is closed after a time of its own", async () => {
  const limits = { idleTimeoutMs: 60_000, authenticationTimeoutMs: 1_000 };
  await using open = await KafkaStage.open({ limits });
  const silent = await open.connect();
  const known = await open.connect();
  assert.ok(await isServed(known));
  assert.equal(await silent.readFrame(), undefined);
  assert.ok(await isServed(known), "one that has sent a request stays");

  await using guarded = await KafkaStage.open({ limits, requiresAuthentication: true });
  const stranger = await guarded.connect();
  const keepAlive = setInterval(() => void isServed(stranger).catch(() => undefined), 200);
  while (!stranger.isClosed) await sleep(20);
  clearInterval(keepAlive);
});

test("large requests wait for the budget and return it", async () => {
  await using stage = await KafkaStage.open({
    limits: { requestBytesMax: mebibyte, stallTimeoutMs: 1_000 },
  });
  const hog = await stage.connect();
  hog.sendRaw(Buffer.concat([Buffer.from([0, 0x0f, 0, 0]), Buffer.alloc(100_000)]));
  while (stage.server.requestBytes === 0) await sleep(5);
  const writer = await stage.connect();
  // It has to wait until the other one has been cut off for standing still.
  await fill(writer, "large", 200_000);
  assert.ok(hog.isClosed);
  assert.equal(stage.server.requestBytes, 0);
});

test("a closing broker does not wait for idle clients", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  assert.ok(await isServed(client));
  const startedMs = performance.now();
  await stage.server.close(60_000);
  assert.ok(performance.now() - startedMs < 30_000);
});

test("a closing broker answers requests in flight and accepts no more", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  await client.ask(metadata, 12, { topics: [{ name: "empty" }] });
  const waiting = client.ask(fetch, 11, fetchBody("empty", 300));
  await sleep(50);
  const closing = stage.server.close(2_000);
  assert.equal((await waiting).errorCode, 0);
  await closing;
  assert.equal(stage.server.connectionCount, 0);
});

test("clients are told the advertised address, or the one they connected to", async () => {
  await using plain = await KafkaStage.open();
  const { brokers } = await (await plain.connect()).ask(metadata, 12, { topics: [] });
  assert.deepEqual(brokers, [{ nodeId: 1, host: "127.0.0.1", port: plain.port, rack: null }]);
  await using advertised = await KafkaStage.open({
    advertised: { host: "kafka.example", port: 9 },
  });
  const told = await (await advertised.connect()).ask(metadata, 12, { topics: [] });
  assert.deepEqual(told.brokers, [{ nodeId: 1, host: "kafka.example", port: 9, rack: null }]);
});

test("a request never gets another request's error", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  const claim = { groupId: "g", generationId: 1, memberId: "m" };
  const { errorCode } = await client.ask(heartbeat, 4, claim);
  assert.equal(errorCode, ERROR_CODES.unknownMemberId);
});

describe("frames", () => {
  test("are assembled from any pieces", () => {
    const frames = new FrameReader(100);
    const bytes = Buffer.concat([frameOf(1, 2), frameOf(), frameOf(Buffer.from("abc"))]);
    const found: string[] = [];
    for (const byte of bytes) {
      frames.push(Buffer.from([byte]));
      for (let frame = frames.next(); frame !== undefined; frame = frames.next()) {
        found.push(frame.toString("hex"));
      }
    }
    assert.deepEqual(found, ["00010002", "", "616263"]);
    frames.push(bytes);
    assert.equal(frames.next()!.length, 4);
    assert.equal(frames.next()!.length, 0);
    assert.equal(frames.next()!.length, 3);
    assert.equal(frames.next(), undefined);
    assert.equal(frames.bytes, 0);
  });
});

describe("a budget", () => {
  test("grants in order of request, and drops clients that are gone", async () => {
    const budget = new ByteBudget(10);
    const { signal } = new AbortController();
    const gone = new AbortController();
    assert.equal(await budget.take(8, signal), true);
    const order: string[] = [];
    const large = budget.take(9, gone.signal).then((granted) => order.push(`large ${granted}`));
    const small = budget.take(1, signal).then((granted) => order.push(`small ${granted}`));
    await sleep(1);
    assert.deepEqual(order, [], "the small one does not overtake");
    gone.abort();
    await Promise.all([large, small]);
    assert.deepEqual(order, ["large false", "small true"]);
    budget.release(9);
    assert.equal(budget.used, 0);
    assert.equal(await budget.take(1_000, signal), true, "a wish over the total is served alone");
  });
});
