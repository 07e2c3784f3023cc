// Closed segments in object storage, from the API to the clients, against the platform's own storage.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { createServer, request as sendHttp } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import {
  describeConfigs,
  incrementalAlterConfigs,
} from "../../src/kafka/protocol/messages/index.ts";
import { EventReader } from "../fixture/event-reader.ts";
import type { PulseHere } from "../fixture/pulse-here.ts";
import { KafkaClient } from "../kafka/client.ts";
import {
  COUNT,
  fetchOnce,
  makeTopic,
  OFFLOADER,
  PAYLOAD_BYTES,
  publishMany,
  readByKafka,
  startBroker,
  waitForOffload,
} from "./rig.ts";
import { OffloadStore } from "./store.ts";

let store: OffloadStore;
before(async () => {
  store = await OffloadStore.start();
});
after(() => store.end());

const settings = (changes: Record<string, unknown> = {}) => store.settings(changes);
const configOf = (prefix: string) => store.configOf(prefix);
const digest = (payloads: readonly string[]) =>
  createHash("sha256").update(payloads.join("\n")).digest("hex");

async function readByEvents(pulse: PulseHere, topic: string, count: number): Promise<string[]> {
  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/${topic}?from=earliest`);
  const events = await reader.wait(count);
  reader.close();
  return events.map(({ data }) => String(data["payload"]));
}

test("a store set over the API is tried first, kept privately, and takes closed segments that all clients read back", async (t) => {
  const pulse = await startBroker(t);
  await checkRefusals(pulse);
  const secret = store.token.split(":")[1]!;
  const set = await pulse.post(OFFLOADER, settings({ s3_prefix: "one/" }));
  assert.equal(set.status, 200, JSON.stringify(set.body));
  assert.deepEqual(
    [set.body.enabled, set.body.source, set.body.s3_endpoint, set.body.s3_prefix],
    [true, "api", store.vault.url, "one/"],
  );
  assert.ok(!JSON.stringify(set.body).includes(secret));
  assert.equal(statSync(join(pulse.folder, "offload.json")).mode & 0o777, 0o600);
  assert.deepEqual([...(await store.list()).keys()], [], "the probe is gone");

  await makeTopic(pulse, "orders");
  const payloads = await publishMany(pulse, "orders");
  const { remote_segments: segments } = await waitForOffload(pulse, 3);
  const objects = await store.list();
  assert.equal(objects.size, segments);
  for (const name of objects.keys())
    assert.match(name, /^one\/log\/[0-9a-f]{32}\/[0-9a-f]{32}\/0\//);

  const expected = digest(payloads);
  assert.equal(digest(await readByKafka(pulse, "orders", COUNT)), expected);
  assert.equal(digest(await readByEvents(pulse, "orders", COUNT)), expected);
  const page = await pulse.get("/api/v1/topics/orders/messages?partition=0&from=1&limit=1");
  assert.equal(page.status, 200, JSON.stringify(page.body));
  await waitFor(async () => {
    const metrics = (await pulse.get("/metrics")).body as string;
    const isCounted = (series: string) =>
      new RegExp(`^platform_pulse_offload_${series} [1-9]`, "m");
    return (
      isCounted('uploads_total\\{result="ok"\\}').test(metrics) &&
      isCounted('reads_total\\{source="store"\\}').test(metrics)
    );
  }, "uploads and reads are counted");

  await pulse.stop();
  rmSync(join(pulse.folder, "offload-cache"), { recursive: true, force: true });
  await pulse.start();
  assert.equal((await pulse.get(OFFLOADER)).body.source, "api");
  assert.equal(digest(await readByKafka(pulse, "orders", COUNT)), expected);

  await checkMove(pulse, expected);
  const removed = await pulse.get("/api/v1/topics/orders", { method: "DELETE" });
  assert.ok(removed.status < 300, JSON.stringify(removed.body));
  await waitFor(async () => (await store.list("moved")).size === 0);
  assert.equal((await pulse.get(OFFLOADER, { method: "DELETE" })).status, 204);
  assert.equal(existsSync(join(pulse.folder, "offload.json")), false);
  assert.equal((await pulse.get(OFFLOADER)).body.source, null);
});

/** Stores that cannot be used are refused with the reason, before anything is stored. */
async function checkRefusals(pulse: PulseHere): Promise<void> {
  const secret = store.token.split(":")[1]!;
  for (const [change, code] of [
    [{ s3_token: "staged:another-secret" }, "SignatureDoesNotMatch"],
    [{ s3_bucket: "no-such-bucket" }, "NoSuchBucket"],
    [{ s3_endpoint: "http://10.255.255.1:9" }, "address_not_allowed"],
    [{ s3_endpoint: "http://127.0.0.1:1" }, "unreachable"],
  ] as const) {
    const { status, body } = await pulse.post(OFFLOADER, settings(change));
    assert.deepEqual([status, body.code, body.store_code], [422, "offload_unreachable", code]);
    assert.ok(!JSON.stringify(body).includes(secret));
  }
  for (const change of [
    { s3_token: "no-colon" },
    { s3_token: "key:sec\nret" },
    { s3_endpoint: "ftp://h" },
    { s3_prefix: "no-slash" },
  ]) {
    assert.equal((await pulse.post(OFFLOADER, settings(change))).status, 400);
  }
  assert.equal((await pulse.get(OFFLOADER)).body.source, null);
  assert.equal(existsSync(join(pulse.folder, "offload.json")), false);
}

/** Another place is accepted only with all objects; uploads stop only with force. */
async function checkMove(pulse: PulseHere, expected: string): Promise<void> {
  await store.makeBucket("moved");
  const to = settings({ s3_bucket: "moved", s3_prefix: "two/" });
  const refused = await pulse.post(OFFLOADER, to);
  assert.deepEqual([refused.status, refused.body.code], [409, "remote_segments_exist"]);
  const incomplete = await pulse.post(OFFLOADER, { ...to, moved: true });
  assert.deepEqual([incomplete.status, incomplete.body.code], [409, "remote_segments_exist"]);
  const [from, into] = [store.connect(), store.connect("moved")];
  for (const [name, bytes] of await store.list()) {
    await into.put(name.replace("one/", "two/"), await from.getRange(name, 0, bytes));
    await from.delete(name);
  }
  from.close();
  into.close();
  const moved = await pulse.post(OFFLOADER, { ...to, moved: true });
  assert.equal(moved.status, 200, JSON.stringify(moved.body));
  rmSync(join(pulse.folder, "offload-cache"), { recursive: true, force: true });
  assert.equal(digest(await readByKafka(pulse, "orders", COUNT)), expected);
  const kept = await pulse.get(OFFLOADER, { method: "DELETE" });
  assert.deepEqual([kept.status, kept.body.code], [409, "remote_segments_exist"]);
  assert.equal((await pulse.get(`${OFFLOADER}?force`, { method: "DELETE" })).status, 204);
  assert.equal((await pulse.get(OFFLOADER)).body.enabled, false);
  assert.equal(digest(await readByKafka(pulse, "orders", COUNT)), expected);
}

test("a store of the configuration is used as it is, and the API does not change it", async (t) => {
  const pulse = await startBroker(t, {
    ...configOf("configured/"),
    PLATFORM_PULSE_EGRESS_NETWORKS: "",
    PLATFORM_PULSE_OFFLOAD_DEFAULT: "true",
  });
  const { body } = await pulse.get(OFFLOADER);
  assert.deepEqual([body.source, body.enabled], ["config", true]);
  for (const method of ["POST", "DELETE"]) {
    const init = { method, headers: { "content-type": "application/json" } };
    const answer = await pulse.get(OFFLOADER, {
      ...init,
      ...(method === "POST" ? { body: JSON.stringify(settings()) } : {}),
    });
    assert.deepEqual([answer.status, answer.body.code], [409, "configured"], method);
  }
  await pulse.post("/api/v1/topics", { name: "plain" });
  assert.equal((await pulse.get("/api/v1/topics/plain")).body.config.offload, true);
  const compacted = { name: "compacted", config: { cleanup_policy: "compact" } };
  assert.equal((await pulse.post("/api/v1/topics", compacted)).status, 201);
  assert.equal((await pulse.get("/api/v1/topics/compacted")).body.config.offload, false);
  const both = { name: "both", config: { cleanup_policy: "compact", offload: true } };
  const refused = await pulse.post("/api/v1/topics", both);
  assert.deepEqual([refused.status, refused.body.code], [422, "offload_compacted"]);
  await checkKafkaNames(pulse);
});

async function checkKafkaNames(pulse: PulseHere): Promise<void> {
  await using client = await KafkaClient.connect(pulse.kafkaPort);
  const set = (name: string, value: string) => ({ name, configOperation: 0, value });
  const alter = (resourceName: string, configs: ReturnType<typeof set>[]) =>
    client.ask(incrementalAlterConfigs, 1, {
      resources: [{ resourceType: 2, resourceName, configs }],
      validateOnly: false,
    });
  const changes = [set("local.retention.ms", "60000"), set("local.retention.bytes", "1000000")];
  assert.equal((await alter("plain", changes)).responses[0]!.errorCode, 0);
  const { responses } = await alter("compacted", [set("remote.storage.enable", "true")]);
  assert.equal(responses[0]!.errorCode, 40);
  const described = await client.ask(describeConfigs, 4, {
    resources: [{ resourceType: 2, resourceName: "plain", configurationKeys: null }],
    includeSynonyms: false,
    includeDocumentation: false,
  });
  const values = new Map(described.results[0]!.configs.map(({ name, value }) => [name, value]));
  assert.deepEqual(
    ["remote.storage.enable", "local.retention.ms", "local.retention.bytes"].map((name) =>
      values.get(name),
    ),
    ["true", "60000", "1000000"],
  );
}

test("while the store is away publishing and local reads go on, remote reads wait, and nothing is lost", async (t) => {
  const gate = await startGate(t);
  const pulse = await startBroker(t, {
    ...configOf("away/"),
    PLATFORM_PULSE_S3_ENDPOINT: gate.url,
  });
  await makeTopic(pulse, "far");
  const payloads = await publishMany(pulse, "far");
  await waitForOffload(pulse, 3);
  gate.isOpen = false;
  rmSync(join(pulse.folder, "offload-cache"), { recursive: true, force: true });

  const startedMs = performance.now();
  const waiting = await fetchOnce(pulse, "far", 0, 300);
  const elapsedMs = performance.now() - startedMs;
  assert.deepEqual([waiting.errorCode, waiting.records?.length ?? 0], [0, 0]);
  assert.ok(elapsedMs >= 290, `it answered after ${elapsedMs} ms`);
  await checkImpatience(pulse);
  const subscriber = await EventReader.open(`${pulse.url}/api/v1/subscribe/far?from=earliest`);
  payloads.push(...(await publishMany(pulse, "far", 8)));
  const last = await fetchOnce(pulse, "far", payloads.length - 1, 5_000);
  assert.ok((last.records ?? []).length > 0, "the newest record is read from the disk");
  assert.equal(subscriber.ended, false);
  const { body } = await waitFor(async () => {
    const answer = await pulse.get(OFFLOADER);
    return answer.body.last_error === null ? undefined : answer;
  });
  assert.ok(body.pending_segments > 0);
  assert.equal((await pulse.get("/readyz")).status, 200);

  gate.isOpen = true;
  const events = await subscriber.wait(payloads.length, 60_000);
  assert.equal(digest(events.map(({ data }) => String(data["payload"]))), digest(payloads));
  subscriber.close();
  await waitForOffload(pulse, 5);
  assert.equal(digest(await readByKafka(pulse, "far", payloads.length)), digest(payloads));
});

/** A client that asks again and again for records of a store that is away holds one read, not one for each request. */
async function checkImpatience(pulse: PulseHere): Promise<void> {
  const before = process.memoryUsage().arrayBuffers;
  for (let times = 0; times < 40; times++) await fetchOnce(pulse, "far", 0, 0);
  const grownMb = (process.memoryUsage().arrayBuffers - before) / 1e6;
  assert.ok(grownMb < 8, `${grownMb} MB more after 40 requests of 0.5 MB`);
}

/** A proxy in front of the store that can refuse everything. */
async function startGate(t: { after(done: () => unknown): void }) {
  const gate = { url: "", isOpen: true };
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => void pass(Buffer.concat(pieces)));
    const pass = async (sent: Buffer) => {
      if (!gate.isOpen) {
        response.writeHead(503).end();
        return;
      }
      const headers = { ...request.headers } as Record<string, string>;
      delete headers["connection"];
      delete headers["content-length"];
      const target = new URL(request.url!, store.vault.url);
      const { method = "GET" } = request;
      // The signature covers the host that the broker sent.
      const answer = await forward(target, method, headers, sent);
      response.writeHead(answer.status, answer.headers).end(answer.body);
    };
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  gate.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return gate;
}

function forward(
  target: URL,
  method: string,
  headers: Record<string, string>,
  sent: Buffer,
): Promise<{ status: number; headers: Record<string, string>; body: Buffer }> {
  return new Promise((resolve, reject) => {
    const length = sent.length > 0 || method === "PUT" ? { "content-length": sent.length } : {};
    const outgoing = sendHttp(target, { method, headers: { ...headers, ...length } }, (answer) => {
      const pieces: Buffer[] = [];
      answer.on("data", (piece: Buffer) => pieces.push(piece));
      answer.on("end", () => {
        const { connection: _connection, "keep-alive": _kept, ...kept } = answer.headers;
        resolve({
          status: answer.statusCode!,
          headers: kept as Record<string, string>,
          body: Buffer.concat(pieces),
        });
      });
    });
    outgoing.on("error", reject).end(sent);
  });
}

test("without its store a broker is ready with a warning, and says for which messages it needs it", async (t) => {
  const pulse = await startBroker(t, configOf("gone/"));
  await makeTopic(pulse, "gone");
  // A restart looks for messages that may still expire.
  const lasting = { topic: "gone", payload: "l".repeat(PAYLOAD_BYTES), ttl_ms: 3_600_000 };
  assert.equal((await pulse.publish(lasting)).status, 200);
  await publishMany(pulse, "gone", COUNT - 1);
  await waitForOffload(pulse, 3);
  const { folder } = pulse;
  await pulse.stop();
  Object.assign(pulse, {
    env: { PLATFORM_PULSE_EGRESS_NETWORKS: "127.0.0.0/8" },
  });
  await pulse.start();
  const ready = await pulse.get("/readyz");
  assert.deepEqual([ready.status, ready.body.warnings?.offload], [200, "unconfigured"]);
  const page = await pulse.get("/api/v1/topics/gone/messages?partition=0&from=0&limit=1");
  assert.deepEqual([page.status, page.body.code], [503, "cold_unavailable"]);
  assert.equal(page.headers.get("retry-after"), "5");
  const events = await pulse.get("/api/v1/events/?topic=gone");
  assert.deepEqual([events.status, events.body.code], [503, "cold_unavailable"]);
  const replay = { topic: "gone", timestamp: 1 };
  const found = await pulse.post("/api/v1/replay/time", replay);
  assert.deepEqual([found.status, found.body.code], [503, "cold_unavailable"]);
  assert.equal((await fetchOnce(pulse, "gone", 0, 1_000)).errorCode, 56);
  const newest = await fetchOnce(pulse, "gone", COUNT - 1, 1_000);
  assert.equal(newest.errorCode, 0);
  assert.ok((newest.records ?? []).length > 0);
  assert.equal((await pulse.publish({ topic: "gone", payload: "accepted" })).status, 200);
  const elsewhere = await pulse.post(OFFLOADER, settings({ s3_prefix: "elsewhere/" }));
  assert.deepEqual([elsewhere.status, elsewhere.body.code], [409, "remote_segments_exist"]);
  const back = await pulse.post(OFFLOADER, settings({ s3_prefix: "gone/" }));
  assert.equal(back.status, 200, JSON.stringify(back.body));
  assert.equal((await readByKafka(pulse, "gone", COUNT + 1)).length, COUNT + 1);
  assert.ok(readFileSync(join(folder, "offload.json"), "utf8").includes('"gone/"'));
});
