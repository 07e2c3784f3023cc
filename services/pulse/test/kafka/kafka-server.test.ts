// The Kafka face as the broker makes it: who comes in how, what stays over a restart, what is measured.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { createIdSource } from "@platform/kernel/ids";
import { createTokenVerifier, RevocationSet, TokenStreams } from "@platform/kernel/identity";
import { createLogger } from "@platform/kernel/log";
import { MetricRegistry } from "@platform/kernel/metrics";
import { systemClock } from "@platform/kernel/time";
import { openLog, openNodeDisk } from "@platform/log";
import { GuestPool } from "@platform/wasm";
import { DeadLetterWriter } from "../../src/deadletter/dead-letter-writer.ts";
import { Backlog } from "../../src/dispatch/backlog.ts";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import {
  metadata,
  saslAuthenticate,
  saslHandshake,
} from "../../src/kafka/protocol/messages/index.ts";
import { createCredentials, KafkaServer, type KafkaServerOptions } from "../../src/kafka/index.ts";
import { Schemas } from "../../src/schema/schemas.ts";
import { Offsets } from "../../src/store/offsets.ts";
import { StateTable } from "../../src/store/state.ts";
import { Store } from "../../src/store/store.ts";
import { TenantCounts } from "../../src/tenant/tenant-counts.ts";
import { Topics } from "../../src/topic/topics.ts";
import { TopicRules } from "../../src/access/topic-rules.ts";
import { Transforms } from "../../src/transform/transforms.ts";
import { KafkaClient } from "./client.ts";

const secret = "a secret of thirty-two bytes or more";
const operatorToken = "the operator's token";

async function open(t: TestContext, folder: string, changes: Partial<KafkaServerOptions> = {}) {
  const log = await openLog({ disk: openNodeDisk(folder), sync: { kind: "os" } });
  const store = new Store(log);
  const state = await StateTable.open(store);
  const topics = new Topics(log, { topicsPerTenantMax: 100, partitionsMax: 10 });
  const metrics = new MetricRegistry();
  const guests = new GuestPool();
  const topicRules = new TopicRules(store, state);
  const face = await KafkaServer.open({
    store,
    state,
    topics,
    topicRules,
    offsets: Offsets.open(store, state, topics, { groupsPerTenantMax: 100, offsetsMax: 100 }),
    schemas: new Schemas(store, state, topics),
    transforms: new Transforms(store, state, topics, guests, () => undefined),
    deadLetters: new DeadLetterWriter(store, state, topics),
    backlog: new Backlog(store, state, topics, 1_000),
    idSource: createIdSource(),
    clock: systemClock,
    tenantCounts: new TenantCounts(),
    metrics,
    log: createLogger({ service: "pulse", level: "error" }),
    credentials: createCredentials(
      [{ name: "anna", password: "correct horse", tenant: "red" }],
      createTokenVerifier({ clock: systemClock, staticTokens: [operatorToken], secret }),
      topicRules,
    ),
    tokenStreams: new TokenStreams(new RevocationSet("")),
    anonymous: "never",
    isAutoCreating: true,
    messageBytesMax: 1024 * 1024,
    ...changes,
  });
  const { port } = await face.listen({ host: "127.0.0.1", port: 0 });
  let isOpen = true;
  const close = async () => {
    if (!isOpen) return;
    isOpen = false;
    await face.close(0);
    await guests.close();
    await store.close();
  };
  t.after(close);
  return { port, metrics, close, topics };
}

function makeFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "pulse-face-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function signToken(claims: Record<string, unknown>): string {
  const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const body = `${encode({ alg: "HS256", typ: "JWT" })}.${encode(claims)}`;
  return `${body}.${createHmac("sha256", secret).update(body).digest("base64url")}`;
}

function tokenOf(tenant: string | undefined, lifetimeSeconds = 60): string {
  const exp = Math.ceil(Date.now() / 1000) + lifetimeSeconds;
  const scope = "pulse:publish pulse:subscribe pulse:manage";
  return signToken({ sub: "service", exp, scope, ...(tenant === undefined ? {} : { tenant }) });
}

async function authenticate(client: KafkaClient, user: string, password: string) {
  const { errorCode } = await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  if (errorCode !== 0) return { errorCode, sessionLifetimeMs: 0 };
  const authBytes = Buffer.from(`\0${user}\0${password}`);
  return client.ask(saslAuthenticate, 2, { authBytes });
}

test("a token is a valid password for any name that is not a user, and determines the tenant", async (t) => {
  const { port, topics } = await open(t, makeFolder(t));
  for (const [password, tenant] of [
    [operatorToken, ""],
    [tokenOf("blue"), "blue"],
  ] as const) {
    await using client = await KafkaClient.connect(port);
    const { errorCode } = await authenticate(client, "anything", password);
    assert.equal(errorCode, 0);
    await client.ask(metadata, 12, { topics: [{ name: `of-${tenant}` }] });
    assert.ok(topics.find(tenant, `of-${tenant}`));
  }
});

test("a token is rejected for a user's name, without a tenant, and if it is forged", async (t) => {
  const { port } = await open(t, makeFolder(t));
  for (const [user, password] of [
    ["anna", operatorToken],
    ["other", tokenOf(undefined)],
    ["other", `${tokenOf("blue").slice(0, -4)}AAAA`],
    ["other", tokenOf("a:b")],
  ] as const) {
    await using client = await KafkaClient.connect(port);
    const { errorCode } = await authenticate(client, user, password);
    assert.equal(errorCode, ERROR_CODES.saslAuthenticationFailed);
  }
});

test("an expired token ends the service, and a new one on the same connection continues it", async (t) => {
  const { port } = await open(t, makeFolder(t));
  await using client = await KafkaClient.connect(port);
  const { sessionLifetimeMs } = await authenticate(client, "service", tokenOf("blue", 60));
  assert.ok(sessionLifetimeMs > 0 && sessionLifetimeMs <= 61_000, `${sessionLifetimeMs} ms`);
  const again = await authenticate(client, "service", tokenOf("blue", 120));
  assert.ok(again.sessionLifetimeMs > sessionLifetimeMs);
  await client.ask(metadata, 12, { topics: null });

  await using short = await KafkaClient.connect(port);
  // Within the leeway for clocks a token is still taken; the connection ends with it all the same.
  const { errorCode } = await authenticate(short, "service", tokenOf("blue", -2));
  assert.equal(errorCode, 0);
  await assert.rejects(short.ask(metadata, 12, { topics: null }), /closed/);
});

test("an anonymous client on this machine may still authenticate", async (t) => {
  const { port, topics } = await open(t, makeFolder(t), { anonymous: "loopback" });
  await using client = await KafkaClient.connect(port);
  await client.ask(metadata, 12, { topics: [{ name: "operators" }] });
  assert.equal((await authenticate(client, "anna", "correct horse")).errorCode, 0);
  await client.ask(metadata, 12, { topics: [{ name: "annas" }] });
  assert.ok(topics.find("", "operators"));
  assert.ok(topics.find("red", "annas"));
  const { errorCode } = await authenticate(client, "anna", "correct horse");
  assert.equal(errorCode, ERROR_CODES.illegalSaslState, "once is enough");
});

test("the cluster id survives a restart, and requests are counted by name", async (t) => {
  const folder = makeFolder(t);
  const clusterIds: (string | null)[] = [];
  for (let round = 0; round < 2; round++) {
    const { port, metrics, close } = await open(t, folder, { anonymous: "loopback" });
    {
      await using client = await KafkaClient.connect(port);
      const { clusterId } = await client.ask(metadata, 12, { topics: null });
      clusterIds.push(clusterId);
    }
    const text = await metrics.render();
    assert.match(text, /kafka_request_duration_seconds_count\{request="Metadata"\} 1/);
    await close();
  }
  assert.match(clusterIds[0]!, /^[\w-]{22}$/);
  assert.equal(clusterIds[0], clusterIds[1]);
});
