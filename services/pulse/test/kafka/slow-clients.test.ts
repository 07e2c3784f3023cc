// Clients that do not read, or hardly send: what they make the broker hold is bounded, and others are served.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { Socket } from "node:net";
import { Outflow, OutgoingBudget } from "@platform/kernel/sockets";
import { waitFor } from "@platform/testing/wait";
import { createFetchRoutes } from "../../src/kafka/api/fetch.ts";
import { apiVersions, fetch, metadata } from "../../src/kafka/protocol/messages/index.ts";
import { AnswerRoom } from "../../src/kafka/server/answer-room.ts";
import type { RequestContext } from "../../src/kafka/server/route.ts";
import { ALL_RIGHTS } from "../../src/topic/rights.ts";
import type { KafkaClient } from "./client.ts";
import { fetchBody, fill, mebibyte, versionsBody, write } from "./requests.ts";
import { KafkaStage } from "./stage.ts";
import { CountedUser, UserConnections } from "../../src/connection/user-connections.ts";

/** One batch, and with it one answer. The system's own buffers of a connection on loopback hold one or two. */
const largeBytes = 7 * mebibyte;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** A client that asks for `count` large answers and reads nothing. */
async function connectSlow(stage: KafkaStage, count: number): Promise<KafkaClient> {
  const client = await stage.connect();
  client.socket.pause();
  for (let sent = 0; sent < count; sent++) client.send(fetch, 11, fetchBody("large"));
  return client;
}

test("a client that sends slowly and reads nothing is disconnected, a consumer that waits for data is not", async () => {
  await using stage = await KafkaStage.open({
    sync: { kind: "os" },
    limits: { stallTimeoutMs: 2_000 },
  });
  const other = await stage.connect();
  await fill(other, "large", largeBytes);
  await other.ask(metadata, 12, { topics: [{ name: "empty" }] });
  const waiting = other.ask(fetch, 11, fetchBody("empty", 6_000));
  const slow = await connectSlow(stage, 5);
  await waitFor(() => {
    if (!slow.isClosed) slow.send(apiVersions, 3, versionsBody);
    return stage.faults.length > 0;
  }, "the client was disconnected");
  assert.deepEqual(
    stage.faults.map(({ kind }) => kind),
    ["stalled"],
  );
  await waitFor(() => stage.server.connectionCount === 1, "its connection is gone");
  assert.equal(stage.server.responseBytes, 0);
  assert.equal((await waiting).errorCode, 0);
});

test("for a pipelining client that does not read, one answer is built at a time; once it reads, all arrive in order", async () => {
  await using stage = await KafkaStage.open({ sync: { kind: "os" } });
  await fill(await stage.connect(), "large", largeBytes);
  const client = await stage.connect();
  client.socket.pause();
  const sent: number[] = [];
  for (let count = 0; count < 20; count++) {
    sent.push(
      client.send(fetch, 11, fetchBody("large")),
      client.send(metadata, 12, { topics: null }),
    );
    sent.push(client.send(apiVersions, 3, versionsBody));
  }
  await waitFor(() => stage.server.responseBytes > mebibyte, "answers wait");
  let most = 0;
  for (let count = 0; count < 50; count++) {
    most = Math.max(most, stage.server.responseBytes);
    await sleep(10);
  }
  assert.ok(most < largeBytes + 200_000, `${most} bytes were held`);
  const handled = stage.requests.filter((name) => name === "Fetch 11").length;
  assert.ok(handled <= 4, `${handled} Fetch requests were handled`);
  client.socket.resume();
  const order: number[] = [];
  for (const _ of sent) order.push((await client.readFrame())!.readInt32BE(0));
  assert.deepEqual(order, sent);
  assert.deepEqual(stage.faults, []);
});

test("answers after a waiting one are not built before their turn", async () => {
  await using stage = await KafkaStage.open({ sync: { kind: "os" } });
  const client = await stage.connect();
  await fill(client, "topic", 10);
  await client.ask(metadata, 12, { topics: [{ name: "empty" }] });
  client.send(fetch, 11, fetchBody("empty", 1_500));
  for (let count = 0; count < 20; count++) client.send(metadata, 12, { topics: null });
  stage.requests.length = 0;
  await sleep(300);
  assert.deepEqual(stage.requests, []);
  for (let count = 0; count < 21; count++) assert.ok((await client.readFrame()) !== undefined);
  assert.equal(stage.requests.length, 21);
});

test("at the limit, clients that read nothing are disconnected, and other producers and consumers are served", async () => {
  const responseBytesMax = 24 * mebibyte;
  await using stage = await KafkaStage.open({ sync: { kind: "os" }, limits: { responseBytesMax } });
  const writer = await stage.connect();
  const reader = await stage.connect();
  const largeReader = await stage.connect();
  await fill(writer, "large", largeBytes);
  await fill(writer, "small", 1_000);
  collectGarbage();
  const before = process.memoryUsage().arrayBuffers;
  await Promise.all(Array.from({ length: 12 }, () => connectSlow(stage, 5)));
  await waitFor(() => stage.server.responseBytes >= responseBytesMax, "the bound is reached");
  const large = largeReader.ask(fetch, 11, fetchBody("large"));
  let slowestMs = 0;
  let most = 0;
  let mostMemory = 0;
  while (stage.server.responseBytes >= responseBytesMax) {
    const startedMs = performance.now();
    await write(writer, "small", 1_000);
    const { topics } = await reader.ask(fetch, 11, fetchBody("small"));
    assert.ok(topics[0]!.partitions[0]!.records!.length >= 1_000, "the consumer got records");
    slowestMs = Math.max(slowestMs, performance.now() - startedMs);
    most = Math.max(most, stage.server.responseBytes);
    collectGarbage();
    mostMemory = Math.max(mostMemory, process.memoryUsage().arrayBuffers - before);
    await sleep(20);
  }
  assert.ok(slowestMs < 1_000, `Produce and Fetch took ${slowestMs} ms`);
  // Answers that were being read from the log when it became full come on top of it.
  assert.ok(most < 1.5 * responseBytesMax, `${most} bytes were held`);
  assert.ok(mostMemory < 1.5 * responseBytesMax + 8 * mebibyte, `${mostMemory} bytes of memory`);
  assert.ok((await large).topics[0]!.partitions[0]!.records!.length >= largeBytes, "answered late");
  const kinds = new Set(stage.faults.map(({ kind }) => kind));
  assert.deepEqual([...kinds], ["over-budget"]);
});

test("a request that arrives too slowly is dropped, and its budget is returned", async () => {
  await using stage = await KafkaStage.open({
    sync: { kind: "os" },
    limits: { requestBytesMax: mebibyte, stallTimeoutMs: 2_000 },
  });
  const hog = await stage.connect();
  hog.sendRaw(Buffer.concat([Buffer.from([0, 0x0f, 0, 0]), Buffer.alloc(100_000)]));
  await waitFor(() => stage.server.requestBytes > 0, "the request has begun");
  const writer = await stage.connect();
  const written = fill(writer, "large", 200_000);
  await waitFor(() => {
    if (!hog.isClosed) hog.sendRaw(Buffer.alloc(1));
    return stage.faults.length > 0;
  }, "the client was disconnected");
  assert.deepEqual(
    stage.faults.map(({ kind }) => kind),
    ["slow-request"],
  );
  await written;
  assert.equal(stage.server.requestBytes, 0);
});

test("a Fetch without room is answered without records and without an error", async () => {
  await using stage = await KafkaStage.open({ sync: { kind: "os" } });
  await fill(await stage.connect(), "topic", 1_000);
  const exchange: RequestContext = {
    session: {
      remoteAddress: "127.0.0.1",
      advertised: { host: "127.0.0.1", port: 9092 },
      authentication: {
        state: "done",
        principal: { name: "anonymous", tenant: "", rights: ALL_RIGHTS },
      },
      user: new CountedUser(new UserConnections(1)),
      clientId: undefined,
      mutedUntilMs: 0,
    },
    version: 11,
    clientId: "test",
    signal: new AbortController().signal,
    turn: () => Promise.resolve(),
    reserve: () => Promise.resolve(0),
    reserveSmall: () => Promise.resolve(0),
    onSent: () => undefined,
  };
  const request = {
    ...fetchBody("topic"),
    sessionId: 0,
    topics: [
      {
        name: "topic",
        topicId: "",
        partitions: [
          { partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000, currentLeaderEpoch: -1 },
        ],
      },
    ],
  };
  const [route] = createFetchRoutes(stage.broker);
  const answer = (await route!.handle(request as never, exchange)) as {
    topics: { partitions: object[] }[];
  };
  assert.partialDeepStrictEqual(answer.topics[0]!.partitions, [
    { errorCode: 0, highWatermark: 1, records: [] },
  ]);
});

describe("the room for answers", () => {
  const bounds = { writeStallMs: 0, answerPace: { bytesMin: 0, windowMs: 1_000 } };

  test("admits in order of request, one by one as clients read, and drops clients that are gone", async () => {
    const budget = new OutgoingBudget(100);
    const room = new AnswerRoom(budget);
    const held = new Outflow(new Socket(), budget, bounds, () => undefined);
    const { signal } = new AbortController();
    const gone = new AbortController();
    (await room.enter(signal))!();
    held.claim(100);
    const order: string[] = [];
    const enter = (name: string, timeoutMs?: number, own = signal) =>
      room.enter(own, timeoutMs).then(async (leave) => {
        order.push(`${name} ${leave !== undefined}`);
        if (leave === undefined) return;
        // Each one fills it again, when its answer has been read from the log.
        await sleep(20);
        held.claim(100);
        leave();
      });
    const all = [enter("a"), enter("b", 50), enter("c", 60_000, gone.signal), enter("d")];
    await sleep(80);
    gone.abort();
    await sleep(1);
    assert.deepEqual(order, ["b false", "c false"]);
    held.endClaims();
    await sleep(100);
    assert.deepEqual(order, ["b false", "c false", "a true"], "d waits for the next room");
    held.endClaims();
    await Promise.all(all);
    assert.equal(order.at(-1), "d true");
  });
});
