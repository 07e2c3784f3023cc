// Events reach webhooks: signed, at least once, and a bad receiver does not affect others.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { createAddressPolicy } from "@platform/kernel/egress";
import { waitFor } from "@platform/testing/wait";
import { createDeadLetters } from "../../src/delivery/dead-letters.ts";
import { checkStomp, checkWebhook, type DeliveryTarget } from "../../src/delivery/target.ts";
import { deriveWebhookSecret } from "../../src/delivery/webhook.ts";
import { MemoryOutbox, deliver, masterKey } from "./rig.ts";

interface Received {
  headers: IncomingHttpHeaders;
  body: string;
  record: EventRecord;
}
interface EventRecord {
  eventName: string;
  eventVersion: string;
  userIdentity: { principalId: string };
  s3: {
    object: { key: string; sequencer: string; size?: number };
    bucket: { name: string; ownerIdentity: { principalId: string } };
  };
}

/** A receiver; `answer` returns the status for each event. */
async function startReceiver(
  answer: (record: EventRecord, count: number) => number | Promise<number> = () => 200,
): Promise<{ target: DeliveryTarget; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const body = Buffer.concat(chunks).toString();
      const { Records } = JSON.parse(body) as { Records: EventRecord[] };
      const record = Records[0]!;
      received.push({ headers: request.headers, body, record });
      void Promise.resolve(answer(record, received.length)).then((status) =>
        response.writeHead(status).end(),
      );
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  after(() => (server.closeAllConnections(), server.close()));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
  return { target: { kind: "webhook", url, names: "objstore" }, received };
}

test("an event arrives as a record of version 2.1 with its key encoded", async () => {
  const outbox = new MemoryOutbox();
  deliver(outbox);
  const { target, received } = await startReceiver();
  outbox.add(target, { key: "a b/ü+(1).txt", versionId: "v1" });
  await waitFor(() => outbox.pending.size === 0, "acknowledged");
  const { record } = received[0]!;
  assert.equal(record.eventVersion, "2.1");
  assert.equal(record.eventName, "objstore:ObjectCreated:Put");
  assert.equal(record.s3.bucket.name, "photos");
  assert.deepEqual(record.s3.bucket.ownerIdentity, { principalId: "owner" });
  assert.deepEqual(record.s3.object, {
    key: "a+b/%C3%BC%2B%281%29.txt",
    size: 5,
    eTag: "5d41402abc4b2a76b9719d911017c592",
    versionId: "v1",
    sequencer: "0000000000000001",
  });
  outbox.add({ ...target, names: "s3" }, { name: "ObjectRemoved:Delete" });
  await waitFor(() => received.length === 2, "the second event");
  assert.equal(received[1]!.record.eventName, "ObjectRemoved:Delete");
  assert.equal(received[1]!.record.s3.object.size, undefined);
});

test("an event names a version only where there are some, and lifecycle rules as who did it", async () => {
  const outbox = new MemoryOutbox();
  deliver(outbox);
  const { target, received } = await startReceiver();
  outbox.add(target, { versionId: "null" });
  await waitFor(() => received.length === 1, "the first event");
  assert.ok(!("versionId" in received[0]!.record.s3.object));
  outbox.add(target, { name: "LifecycleExpiration:Delete", actor: {} });
  await waitFor(() => received.length === 2, "the second event");
  assert.deepEqual(received[1]!.record.userIdentity, { principalId: "s3.amazonaws.com" });
});

test("a webhook continues the trace of the change, or is a new one", async () => {
  const outbox = new MemoryOutbox();
  deliver(outbox);
  const { target, received } = await startReceiver(() => (received.length === 1 ? 500 : 200));
  const trace = {
    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    tracestate: "vendor=a,other=b",
  };
  outbox.add(target, { actor: { trace } });
  await waitFor(() => received.length === 2, "the repeated event");
  for (const { headers } of received) {
    assert.equal(headers["traceparent"], trace.traceparent);
    assert.equal(headers["tracestate"], trace.tracestate);
  }
  outbox.add(target, { actor: {} });
  await waitFor(() => received.length === 3, "the event of a lifecycle rule");
  const { headers } = received[2]!;
  assert.match(
    String(headers["traceparent"]),
    /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-0[01]$/,
  );
  assert.equal(headers["tracestate"], undefined);
});

test("its receiver can verify the signature, and the secret of another receiver does not match", async () => {
  const outbox = new MemoryOutbox();
  deliver(outbox);
  const { target, received } = await startReceiver();
  outbox.add(target);
  await waitFor(() => received.length === 1, "the event");
  const { headers, body } = received[0]!;
  const sign = (secret: string) =>
    createHmac("sha256", Buffer.from(secret.replace("whsec_", ""), "base64"))
      .update(`${String(headers["webhook-id"])}.${String(headers["webhook-timestamp"])}.${body}`)
      .digest("base64");
  const secret = deriveWebhookSecret(masterKey, "photos", target.url);
  assert.equal(headers["webhook-signature"], `v1,${sign(secret)}`);
  const other = deriveWebhookSecret(masterKey, "photos", `${target.url}2`);
  assert.notEqual(headers["webhook-signature"], `v1,${sign(other)}`);
  assert.ok(Math.abs(Number(headers["webhook-timestamp"]) - Date.now() / 1_000) < 60);
});

test("a receiver that fails gets the event again, under the same id, until it accepts it", async () => {
  const outbox = new MemoryOutbox();
  const { delivery } = deliver(outbox);
  const { target, received } = await startReceiver((_record, count) => (count < 4 ? 500 : 204));
  outbox.add(target);
  await waitFor(() => outbox.pending.size === 0, "acknowledged");
  assert.equal(received.length, 4);
  assert.equal(new Set(received.map(({ headers }) => headers["webhook-id"])).size, 1);
  assert.deepEqual(delivery.stats, { delivered: 1, failed: 3, givenUp: 0 });
});

test("an event that the receiver refuses does not delay the others", async () => {
  const outbox = new MemoryOutbox();
  deliver(outbox, { retryMs: 60_000, retryMsMax: 60_000 });
  const { target, received } = await startReceiver((record) =>
    record.s3.object.sequencer.endsWith("1") ? 422 : 200,
  );
  for (let count = 0; count < 15; count++) outbox.add(target);
  await waitFor(() => outbox.pending.size === 1, "all others acknowledged");
  assert.ok(outbox.pending.has(1));
  assert.equal(received.length, 15);
});

test("a hanging receiver does not delay another subscription", async () => {
  const outbox = new MemoryOutbox();
  deliver(outbox, { queueEventsMax: 4 });
  const hanging = await startReceiver(() => new Promise<number>(() => undefined));
  const honest = await startReceiver();
  for (let count = 0; count < 50; count++) {
    outbox.add(hanging.target, { ruleId: "hanging" });
    outbox.add(honest.target, { ruleId: "honest" });
  }
  await waitFor(() => outbox.pending.size === 50, "the honest one's events");
  assert.equal(honest.received.length, 50);
  assert.ok(hanging.received.length <= 4, `${hanging.received.length} at the hanging one`);
});

test("more events than a queue holds all arrive, once each, while others come in", async () => {
  const outbox = new MemoryOutbox();
  deliver(outbox, { queueEventsMax: 10, concurrency: 3 });
  const { target, received } = await startReceiver();
  const other = await startReceiver();
  for (let count = 0; count < 300; count++) {
    outbox.add(target, { ruleId: "one" });
    if (count % 3 === 0) outbox.add(other.target, { ruleId: "two" });
    if (count % 50 === 0) await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await waitFor(() => outbox.pending.size === 0, "all acknowledged");
  assert.equal(received.length, 300);
  assert.equal(new Set(received.map(({ headers }) => headers["webhook-id"])).size, 300);
  assert.equal(other.received.length, 100);
});

test("a dead receiver is probed at growing intervals, and gets everything when it is back", async () => {
  const outbox = new MemoryOutbox();
  let isDead = true;
  const { target, received } = await startReceiver(() => (isDead ? 503 : 200));
  deliver(outbox, { retryMs: 50, retryMsMax: 200 });
  for (let count = 0; count < 40; count++) outbox.add(target);
  await waitFor(() => received.length >= 8, "the first attempts");
  await new Promise((resolve) => setTimeout(resolve, 600));
  // Eight at once, then one at a time with growing waits of 25 ms to 200 ms.
  assert.ok(received.length < 30, `${received.length} attempts in 600 ms`);
  isDead = false;
  await waitFor(() => outbox.pending.size === 0, "all acknowledged");
});

test("a clock that is set back delays no event by the jump", async () => {
  const HOUR_MS = 3_600_000;
  const outbox = new MemoryOutbox();
  let isDead = true;
  let aheadMs = HOUR_MS;
  const { target } = await startReceiver(() => (isDead ? 503 : 200));
  const clock = {
    now: () => Date.now() + aheadMs,
    monotonicMs: () => performance.now(),
  };
  const { delivery } = deliver(outbox, { clock });
  for (let count = 0; count < 5; count++) outbox.add(target);
  const readTries = () => delivery.describe()("photos", "rule").tries;
  // The receiver has seen an attempt before its outcome is noted.
  await waitFor(() => readTries().length >= 8, "a target that is probed");
  const tries = readTries();
  assert.ok(tries.every(({ nextMs }) => nextMs! > Date.now() + HOUR_MS / 2));
  aheadMs = 0;
  isDead = false;
  await waitFor(() => outbox.pending.size === 0, "all acknowledged");
  const all = readTries();
  assert.ok(all.every(({ durationMs }) => Number.isInteger(durationMs) && durationMs >= 0));
});

test("waiting events of a deleted subscription are dropped, those of others are sent", async () => {
  const outbox = new MemoryOutbox();
  let isDeleted = false;
  const { delivery } = deliver(outbox, {
    isWanted: ({ ruleId }) => !isDeleted || ruleId !== "gone",
  });
  let status = 503;
  const { target, received } = await startReceiver(() => status);
  for (let n = 0; n < 20; n += 1) outbox.add(target, { ruleId: "gone", key: "gone" });
  await waitFor(() => delivery.stats.failed >= 3, "failed");
  isDeleted = true;
  await waitFor(() => outbox.pending.size === 0, "dropped");
  status = 200;
  const before = received.length;
  outbox.add(target, { ruleId: "gone", key: "gone" });
  outbox.add(target, { ruleId: "kept", key: "kept" });
  await waitFor(() => outbox.pending.size === 0, "sent");
  assert.deepEqual(
    received.slice(before).map(({ record }) => record.s3.object.key),
    ["kept"],
  );
  assert.equal(delivery.stats.givenUp, 0);
});

test("an event that cannot be delivered for too long becomes a dead letter", async () => {
  const outbox = new MemoryOutbox();
  const { target } = await startReceiver(() => 500);
  const { deadLetters, delivery } = deliver(outbox, { ageMsMax: 60 });
  outbox.add(target);
  await waitFor(() => outbox.pending.size === 0, "abandoned");
  assert.equal(deadLetters.letters.length, 1);
  assert.match(deadLetters.letters[0]!.reason, /status 500/);
  assert.equal(delivery.stats.givenUp, 1);
});

test("unacknowledged events are delivered after a restart", async () => {
  const outbox = new MemoryOutbox();
  const { target, received } = await startReceiver();
  for (let count = 0; count < 5; count++) outbox.add(target);
  deliver(outbox);
  await waitFor(() => outbox.pending.size === 0, "all acknowledged");
  assert.equal(received.length, 5);
});

test("addresses inside the network are not called, and the log does not contain the target", async () => {
  const outbox = new MemoryOutbox();
  const { received, target } = await startReceiver();
  const { createEgress } = await import("@platform/kernel/egress");
  const { lines } = deliver(outbox, { fetch: createEgress(), retryMs: 20 });
  outbox.add({ ...target, url: `${target.url}?token=s3cret` });
  await waitFor(() => lines.length > 1, "a failure in the log");
  assert.equal(received.length, 0);
  assert.match(lines[0]!, /the address is not allowed/);
  assert.ok(!lines.join("").includes("s3cret"));
});

test("dead letters are lines of JSON without the target, in two bounded files", async () => {
  const folder = mkdtempSync(join(tmpdir(), "dead-letters-"));
  try {
    const path = join(folder, "events", "dead.jsonl");
    const letters = createDeadLetters({ path, fileBytesMax: 2_000, now: () => 0 });
    const outbox = new MemoryOutbox();
    const target = { kind: "stomp", url: "stomp://b", destination: "/q", password: "s3cret" };
    const add = (id: number) =>
      letters.add(
        { ...outbox.add({ ...target, names: "s3" } as DeliveryTarget), id },
        "because",
        3,
      );
    await Promise.all(Array.from({ length: 20 }, (_, at) => add(at)));
    const kept = readFileSync(`${path}.1`, "utf8") + readFileSync(path, "utf8");
    const ids = kept
      .trim()
      .split("\n")
      .map((line) => (JSON.parse(line) as { id: number }).id);
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    );
    assert.equal(ids.at(-1), 19);
    assert.ok(kept.length < 5_500, `${kept.length} bytes`);
    assert.ok(!kept.includes("s3cret"));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

const policy = createAddressPolicy();
for (const url of [
  "ftp://example.org/",
  "not a url",
  "http://user:pass@example.org/",
  "http://127.0.0.1/",
  "http://0x7f000001/",
  "http://[::1]/",
  "http://169.254.169.254/latest/meta-data",
  `http://example.org/${"x".repeat(2_100)}`,
  "http://example.org/\nx",
]) {
  test(`a webhook to ${JSON.stringify(url.slice(0, 40))} is refused when it is created`, () => {
    assert.throws(() => checkWebhook(url, policy), { name: "TargetError" });
  });
}

test("a STOMP target is refused with a long path, credentials in the URL, or line ends in a header", () => {
  const good = { url: "stomp://broker.example.org", destination: "/topic/events" };
  assert.deepEqual(checkStomp({ ...good, user: "u", password: "p:1" }, policy), {
    kind: "stomp",
    url: "stomp://broker.example.org",
    destination: "/topic/events",
    user: "u",
    password: "p:1",
  });
  for (const bad of [
    { ...good, url: "stomp://broker.example.org/a/b" },
    { ...good, url: "stomp://broker.example.org/?a=b" },
    { ...good, url: "stomp://u:p@broker.example.org" },
    { ...good, url: "http://broker.example.org" },
    ...[
      "10.0.0.1:61613",
      "0x7f.1",
      "2130706433",
      "017700000001",
      "127.1",
      "127.0.0.1.",
      "%31%32%37.0.0.1",
      "１２７.0.0.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "[::ffff:7f00:1]",
      "256.0.0.1",
      "a b",
    ].map((host) => ({ ...good, url: `stomp://${host}` })),
    { ...good, destination: "/q\nreceipt:1" },
    { ...good, destination: "" },
    { ...good, password: "a\0b" },
  ])
    assert.throws(() => checkStomp(bad, policy), { name: "TargetError" }, JSON.stringify(bad));
});

test("a STOMP target is stored with its normalized host", () => {
  const check = (url: string) => checkStomp({ url, destination: "/topic/a" }, policy).url;
  assert.equal(check("stomp://Broker.Example.ORG.:61613/"), "stomp://broker.example.org:61613");
  assert.equal(check("stomps://0x01010101/vhost"), "stomps://1.1.1.1/vhost");
});

test("no spelling of the platform's broker reaches destinations other than those of storage", () => {
  const own = { ...policy, platformBroker: { url: "stomp://127.0.0.1:61613" } };
  for (const url of [
    "stomp://platform",
    "stomp://platform/",
    "stomp://PLATFORM",
    "stomp://platform.",
  ]) {
    const target = (destination: string) => checkStomp({ url, destination }, own);
    assert.throws(() => target("/topic/orders"), { name: "TargetError" }, url);
    assert.equal(target("/topic/store.orders").url, "stomp://platform");
  }
});
