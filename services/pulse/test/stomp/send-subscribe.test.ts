// Messages of STOMP clients, from SEND to MESSAGE: destinations, properties, acknowledgements, groups.
import assert from "node:assert/strict";
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { encodeFrame } from "../../src/stomp/frame/frame.ts";
import { PulseHere } from "../fixture/pulse-here.ts";
import { StompClient } from "./client.ts";

let pulse: PulseHere;
const folder = mkdtempSync(join(tmpdir(), "platform-pulse-"));

before(async () => {
  pulse = new PulseHere(folder, {
    PLATFORM_PULSE_NACK_BACKOFF_MS: "20",
    PLATFORM_PULSE_MAX_DELIVERIES: "3",
  });
  await pulse.start();
});

after(async () => {
  await pulse.end();
});

test("a message passes with its headers, key and any bytes, in every version", async (t) => {
  for (const version of ["1.0", "1.1", "1.2"] as const) {
    const client = await StompClient.connect(pulse.stompPort, version);
    t.after(() => client.close());
    const destination = `/topic/${version.replace(".", "-")}.orders`;
    await client.ask("SUBSCRIBE", { destination, id: "a:1" });
    const body = Buffer.from([0, 1, 255, 0, 10]);
    const headers = {
      destination,
      "content-type": "application/octet-stream",
      "correlation-id": "c-7",
      "reply-to": "/topic/answers",
      "platform-key": "käse",
      priority: "4",
      farbe: "grün",
    };
    client.send("SEND", headers, body);
    const { headers: got, bytes } = await client.message();
    assert.deepEqual([...bytes], [...body]);
    assert.equal(got["subscription"], "a:1");
    for (const [name, value] of Object.entries(headers)) assert.equal(got[name], value, name);
    assert.equal(got["content-length"], "5");
    assert.ok(got["message-id"]!.length > 0);
    assert.ok(Math.abs(Number(got["timestamp"]) - Date.now()) < 10_000);
  }
});

test("header names and values may hold colons, line feeds and backslashes from 1.1 on", async (t) => {
  const [old, mid, current] = await Promise.all(
    (["1.0", "1.1", "1.2"] as const).map(async (version) => {
      const client = await StompClient.connect(pulse.stompPort, version);
      t.after(() => client.close());
      await client.ask("SUBSCRIBE", { destination: "x", id: "1" });
      return client;
    }),
  );
  current!.send("SEND", { destination: "x", "a:b": "c\nd\\e\r:", plain: "p" }, "");
  const inCurrent = await current!.message();
  const inMid = await mid!.message();
  const inOld = await old!.message();
  assert.equal(inCurrent.headers["a:b"], "c\nd\\e\r:");
  assert.equal(inMid.headers["a:b"], "c\nd\\e\r:");
  assert.equal(inOld.headers["plain"], "p");
  assert.equal(inOld.headers["a:b"], undefined, "1.0 cannot express it");
});

test("/topic/x and x are one topic, and the members of /queue/x share its messages", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  await client.ask("SUBSCRIBE", { destination: "/topic/jobs", id: "all" });
  await client.ask("SUBSCRIBE", { destination: "jobs", id: "bare" });
  await client.ask("SUBSCRIBE", { destination: "/queue/jobs", id: "one" });
  await client.ask("SUBSCRIBE", { destination: "/queue/jobs", id: "two" });
  for (let at = 0; at < 4; at++) client.send("SEND", { destination: "/queue/jobs" }, String(at));
  const seen: Record<string, string[]> = {};
  for (let count = 0; count < 12; count++) {
    const { headers, body } = await client.message();
    (seen[`${headers["subscription"]} ${headers["destination"]}`] ??= []).push(body);
  }
  assert.deepEqual(seen["all /topic/jobs"], ["0", "1", "2", "3"]);
  assert.deepEqual(seen["bare jobs"], ["0", "1", "2", "3"]);
  const shared = [...seen["one /queue/jobs"]!, ...seen["two /queue/jobs"]!];
  assert.deepEqual(shared.sort(), ["0", "1", "2", "3"]);
  assert.equal(seen["one /queue/jobs"]!.length, 2);
});

test("frames sent at once take effect in order: messages before a SUBSCRIBE do not arrive, those after do", async (t) => {
  const destination = "/topic/at.once";
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  const frameOf = (command: string, headers: Record<string, string>, body = "") =>
    encodeFrame(command, Object.entries(headers), "1.2", Buffer.from(body));
  const send = (body: string) =>
    frameOf("SEND", { destination, "content-length": String(body.length) }, body);
  const frames: Buffer[] = [];
  for (let round = 0; round < 20; round++) {
    frames.push(send(`before ${round}`));
    frames.push(frameOf("SUBSCRIBE", { destination, id: `s${round}` }));
    frames.push(send(`within ${round}`));
    frames.push(frameOf("UNSUBSCRIBE", { id: `s${round}`, receipt: `r${round}` }));
    frames.push(send(`after ${round}`));
  }
  client.write(Buffer.concat(frames));
  for (let round = 0; round < 20; round++) {
    const { headers, body } = await client.message();
    assert.deepEqual([headers["subscription"], body], [`s${round}`, `within ${round}`]);
    const receipt = await client.next();
    assert.deepEqual([receipt.command, receipt.headers["receipt-id"]], ["RECEIPT", `r${round}`]);
  }
});

test("patterns match levels, for plain subscriptions and for those that acknowledge", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  await client.ask("SEND", { destination: "shop.eu.orders" }, "before");
  await client.ask("SUBSCRIBE", { destination: "/topic/shop.*.orders", id: "auto" });
  await client.ask("SUBSCRIBE", {
    destination: "/topic/shop.#",
    id: "acked",
    ack: "client-individual",
  });
  client.send("SEND", { destination: "shop.eu.orders" }, "a");
  client.send("SEND", { destination: "shop.us.orders" }, "b");
  client.send("SEND", { destination: "shop.us.refunds" }, "c");
  const seen: string[] = [];
  while (seen.length < 5) {
    const answer = await client.next();
    if (answer.command !== "MESSAGE") continue;
    seen.push(`${answer.headers["subscription"]} ${answer.headers["destination"]} ${answer.body}`);
    if (answer.headers["ack"] !== undefined) client.send("ACK", { id: answer.headers["ack"] });
  }
  assert.ok(!seen.some((text) => text.endsWith("before")));
  assert.ok(seen.includes("acked /topic/shop.us.refunds c"));
  assert.ok(seen.includes("auto /topic/shop.us.orders b"));
});

test("a subscription can start at the earliest message or at an offset", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  for (const body of ["a", "b", "c"]) await client.ask("SEND", { destination: "log" }, body);
  client.send("SUBSCRIBE", { destination: "log", id: "1", from: "earliest" });
  assert.deepEqual(await client.bodies(3), ["a", "b", "c"]);
  client.send("SUBSCRIBE", { destination: "log", id: "2", from: "2" });
  assert.deepEqual(await client.bodies(1), ["c"]);
});

test("ack:client acknowledges all before, client-individual one; the rest is delivered again", async (t) => {
  const publisher = await StompClient.connect(pulse.stompPort);
  t.after(() => publisher.close());
  for (const [mode, rest] of [
    ["client", ["d"]],
    ["client-individual", ["a", "b", "d"]],
  ] as const) {
    const destination = `acks-${mode}`;
    const options = { destination, id: "s", ack: mode, group: "workers", from: "earliest" };
    for (const body of ["a", "b", "c", "d"]) await publisher.ask("SEND", { destination }, body);
    const first = await StompClient.connect(pulse.stompPort);
    first.send("SUBSCRIBE", options);
    const messages = [];
    for (let count = 0; count < 4; count++) messages.push(await first.message());
    assert.deepEqual(
      messages.map(({ body }) => body),
      ["a", "b", "c", "d"],
    );
    await first.ask("ACK", { id: messages[2]!.headers["ack"]! });
    first.close();
    const second = await StompClient.connect(pulse.stompPort);
    t.after(() => second.close());
    second.send("SUBSCRIBE", options);
    const again = [await second.message()];
    while (again.length < rest.length) again.push(await second.message());
    assert.deepEqual(again.map(({ body }) => body).sort(), rest);
    assert.equal(again[0]!.headers["redelivered"], "true");
    assert.equal(again[0]!.headers["platform-retry-count"], "1");
  }
});

test("1.0 and 1.1 acknowledge by message-id", async (t) => {
  const publisher = await StompClient.connect(pulse.stompPort);
  t.after(() => publisher.close());
  for (const version of ["1.0", "1.1"] as const) {
    const destination = `old-${version.replace(".", "")}`;
    for (const body of ["a", "b"]) await publisher.ask("SEND", { destination }, body);
    const client = await StompClient.connect(pulse.stompPort, version);
    t.after(() => client.close());
    const id: Record<string, string> = version === "1.0" ? {} : { id: "s" };
    client.send("SUBSCRIBE", { destination, ...id, ack: "client", from: "earliest", group: "g" });
    const first = await client.message();
    assert.equal(first.headers["ack"], undefined);
    await client.message();
    const named: Record<string, string> = version === "1.0" ? {} : { subscription: "s" };
    await client.ask("ACK", { "message-id": first.headers["message-id"]!, ...named });
    client.close();
    const next = await StompClient.connect(pulse.stompPort, version);
    t.after(() => next.close());
    next.send("SUBSCRIBE", { destination, ...id, ack: "client", group: "g" });
    assert.deepEqual(await next.bodies(1), ["b"]);
  }
});

test("a rejected message comes again after a back-off, and becomes a dead letter in the end", async (t) => {
  for (const group of [{ group: "g" }, {}] as Record<string, string>[]) {
    const destination = group["group"] === undefined ? "single" : "grouped";
    const client = await StompClient.connect(pulse.stompPort);
    t.after(() => client.close());
    await client.ask("SUBSCRIBE", { destination, id: "s", ack: "client-individual", ...group });
    client.send("SEND", { destination }, "poison");
    for (let delivery = 0; delivery < 3; delivery++) {
      const { headers, body } = await client.message();
      assert.equal(body, "poison");
      assert.equal(headers["platform-retry-count"], delivery === 0 ? undefined : String(delivery));
      client.send("NACK", { id: headers["ack"]! });
    }
    let letters: { original_payload: string; failure_reason: string }[] = [];
    for (let turn = 0; turn < 1_000 && letters.length === 0; turn++) {
      await sleep(20);
      letters = (await pulse.get(`/api/v1/topics/${destination}/dlq`)).body.messages ?? [];
    }
    assert.equal(letters[0]?.original_payload, "poison");
    assert.match(letters[0].failure_reason, /in 3 deliveries/);
  }
});

test("prefetch bounds the unacknowledged messages, over all topics of a pattern too", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  for (const topic of ["p.a", "p.b", "p.c"])
    await client.ask("SEND", { destination: topic }, topic);
  await client.ask("SUBSCRIBE", {
    destination: "p.#",
    id: "s",
    ack: "client-individual",
    prefetch: "2",
    from: "earliest",
  });
  const first = await client.message();
  await client.message();
  // Whatever else was sent would have arrived before the receipt.
  await client.ask("BEGIN", { transaction: "t" });
  client.send("ACK", { id: first.headers["ack"]! });
  await client.message();
});

test("a durable subscription keeps its messages while its client is away", async (t) => {
  const publisher = await StompClient.connect(pulse.stompPort);
  t.after(() => publisher.close());
  const headers = { destination: "/topic/news", id: "reader", durable: "true" };
  const first = await StompClient.connect(pulse.stompPort, "1.2", { "client-id": "tablet" });
  await first.ask("SUBSCRIBE", headers);
  const rival = await StompClient.connect(pulse.stompPort, "1.2", { "client-id": "tablet" });
  rival.send("SUBSCRIBE", headers);
  assert.match((await rival.error()).body, /has a subscriber already/);
  first.close();
  await publisher.ask("SEND", { destination: "/topic/news" }, "a");
  await pulse.kill();
  await pulse.start();
  const again = await StompClient.connect(pulse.stompPort, "1.2", { "client-id": "tablet" });
  t.after(() => again.close());
  const { destination } = headers;
  again.send("SUBSCRIBE", { destination, id: "other", "activemq.subscriptionName": "reader" });
  assert.deepEqual(await again.bodies(1), ["a"]);
  await again.ask("UNSUBSCRIBE", { id: "other", "activemq.subscriptionName": "reader" });
  await again.ask("SEND", { destination }, "b");
  await again.ask("SUBSCRIBE", headers);
  again.send("SEND", { destination }, "c");
  assert.deepEqual(await again.bodies(1), ["c"], "the deleted subscription has no position");
});

test("messages are delayed, expire and are deduplicated as over HTTP", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  await client.ask("SUBSCRIBE", { destination: "timed", id: "s" });
  const startedMs = Date.now();
  client.send("SEND", { destination: "timed", delay: "300" }, "late");
  client.send("SEND", { destination: "timed", "platform-message-id": "m-1" }, "once");
  client.send("SEND", { destination: "timed", "platform-message-id": "m-1" }, "twice");
  const once = await client.message();
  assert.deepEqual([once.body, once.headers["message-id"]], ["once", "m-1"]);
  assert.equal((await client.message()).body, "late");
  assert.ok(Date.now() - startedMs >= 290);
  const expires = String(Date.now() + 60_000);
  client.send("SEND", { destination: "timed", expires }, "soon");
  assert.ok(Math.abs(Number((await client.message()).headers["expires"]) - Number(expires)) < 50);
  await client.ask("SEND", { destination: "unread", ttl: "50" }, "forgotten");
  let total = 0;
  for (let turn = 0; turn < 1_000 && total === 0; turn++) {
    await sleep(20);
    total = (await pulse.get("/api/v1/topics/unread/dlq")).body.total ?? 0;
  }
  assert.equal(total, 1);
});

test("a subscription with a backlog does not hold back the others of its client", async (t) => {
  const client = await StompClient.connect(pulse.stompPort);
  t.after(() => client.close());
  const body = Buffer.alloc(50_000, "x");
  for (let count = 0; count < 200; count++) client.send("SEND", { destination: "long" }, body);
  await client.ask("SEND", { destination: "short" }, "s");
  client.socket.pause();
  client.send("SUBSCRIBE", { destination: "long", id: "long", from: "earliest" });
  client.send("SUBSCRIBE", { destination: "short", id: "short", from: "earliest" });
  // Far more than the system's buffers hold is waiting.
  await sleep(300);
  client.socket.resume();
  let before = 0;
  while ((await client.message()).body !== "s") before++;
  assert.ok(before < 190, `${before} messages came before`);
});
