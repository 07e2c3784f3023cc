// Real Kafka clients against the broker; clients that support all codecs read the messages of all others. With
// PLATFORM_CLIENTS_TABLE=write the run also rewrites docs/guide/kafka-clients.md.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { after, before, describe, test, type TestContext } from "node:test";
import { KafkaStage } from "../stage.ts";
import type { Codec, RealKafkaClient } from "./client.ts";
import { libraries } from "./libraries.ts";
import { programs } from "./programs.ts";

const clients: readonly RealKafkaClient[] = [...programs, ...libraries];
const page = new URL("../../../../../docs/guide/kafka-clients.md", import.meta.url);
const messagesEach = 40;

const shown = new Map<string, string[]>();
let stage: KafkaStage;
let servers: string;

before(async () => {
  stage = await KafkaStage.open();
  servers = `127.0.0.1:${stage.port}`;
});
after(async () => {
  await stage[Symbol.asyncDispose]();
  if (process.env["PLATFORM_CLIENTS_TABLE"] === "write") writePage();
});

function isMissing(client: RealKafkaClient, t: TestContext): boolean {
  const version = client.readVersion();
  if (version !== undefined) {
    t.diagnostic(`${client.name} ${version}`);
    return false;
  }
  const reason = `Debian package ${client.debianPackage} is not installed`;
  assert.notEqual(process.env["PLATFORM_TEST_PEERS"], "required", reason);
  t.skip(reason);
  return true;
}

function note(client: RealKafkaClient, what: string): void {
  shown.set(client.name, [...(shown.get(client.name) ?? []), what]);
}

function numbered(prefix: string, count = messagesEach): string[] {
  return Array.from({ length: count }, (_, number) => `${prefix}${number}`);
}

for (const client of clients) {
  describe(client.name, () => {
    const topic = `of-${client.name.replaceAll(/[^a-z]/g, "-")}`;

    test(`writes ${client.codecs.join(", ")}; reads all of it as a group of one`, async (t) => {
      if (isMissing(client, t)) return;
      for (const codec of client.codecs) {
        await client.produce(servers, topic, codec, messagesEach, `${codec}-`);
      }
      const all = client.codecs.flatMap((codec) => numbered(`${codec}-`));
      const values = await client.consume(servers, topic, "first", all.length);
      assert.deepEqual(values.sort(), all.sort());
      note(client, `writes and reads ${client.codecs.join(", ").replace("none", "uncompressed")}`);
    });

    test("continues at the offset of its group after a restart of the broker", async (t) => {
      if (isMissing(client, t)) return;
      await stage.restart();
      await client.produce(servers, topic, "none", 10, "later-");
      const values = await client.consume(servers, topic, "first", 10);
      assert.deepEqual(values.sort(), numbered("later-", 10).sort());
      note(client, "continues at the committed offset after a restart of the broker");
    });

    test("shares a topic of four partitions with a second member of its group", async (t) => {
      if (isMissing(client, t)) return;
      const shared = `${topic}-shared`;
      await stage.broker.topics.create("", shared, { partitions: 4 });
      const half = 40;
      const readers = [1, 2].map(() => client.consume(servers, shared, `${topic}-two`, half));
      await awaitMembers(`:${topic}-two`, 2);
      // The same number to each partition, so that each of the two members receives half.
      for (const index of [0, 1, 2, 3]) await appendTo(shared, index, 20);
      const [one, other] = await Promise.all(readers);
      assert.equal(one!.length, half);
      assert.equal(other!.length, half);
      assert.equal(new Set([...one!, ...other!]).size, 80);
      note(client, "two members share a topic");
    });
  });
}

test("messages of any client in any compression are read by all others", async (t) => {
  const readable: [RealKafkaClient, Codec][] = [];
  const topic = "mixed";
  for (const client of clients) {
    if (client.readVersion() === undefined) continue;
    for (const codec of client.codecs) {
      await client.produce(servers, topic, codec, 5, `${client.name}-${codec}-`);
      readable.push([client, codec]);
    }
  }
  const all = readable.flatMap(([{ name }, codec]) => numbered(`${name}-${codec}-`, 5)).sort();
  for (const client of clients) {
    // Clients that lack a codec cannot read messages compressed with it.
    if (client.readVersion() === undefined || client.codecs.length < 5) continue;
    const values = await client.consume(servers, topic, `all-${client.name}`, all.length);
    assert.deepEqual(values.sort(), all, client.name);
    t.diagnostic(`${client.name} read ${values.length} messages`);
    note(client, "reads messages from all other clients");
  }
});

async function awaitMembers(key: string, count: number): Promise<void> {
  const endMs = performance.now() + 30_000;
  for (;;) {
    const group = stage.broker.groups.describe(key);
    if (group?.state === "Stable" && group.members.length === count) return;
    assert.ok(performance.now() < endMs, `the group is ${JSON.stringify(group?.state)}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

async function appendTo(name: string, index: number, count: number): Promise<void> {
  const partition = stage.broker.topics.get("", name).stored.partitions[index]!;
  const records = numbered(`p${index}-`, count).map((value) => ({
    partition,
    record: { key: null, value: Buffer.from(value), headers: [], timestamp: Date.now() },
  }));
  await stage.broker.store.append(records);
}

const remarks = [
  "## While the broker is killed",
  "",
  "In `services/pulse/test/kafka/clients/kill.test.ts`, idempotent producers of confluent-kafka, kafkajs and",
  "@platformatic/kafka write while the broker is killed (`kill -9`) and restarted: three times in `npm test`, more often with",
  "`PLATFORM_KAFKA_KILLS=100`. Afterwards every acknowledged message is in the log exactly once and in order, and a",
  "consumer group that was reading all the time has received every message.",
  "",
  "## Client settings",
  "",
  "- Credentials: SASL PLAIN with any user name and a token as the password, or PLAIN or SCRAM with a user of `users_file`. Under",
  "  `platform up`, the operator's token with the user name `operator@main` acts for the tenant of applications:",
  "  `kcat -L -b localhost:9092 -X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=operator@main -X sasl.password=$PLATFORM_PULSE_TOKEN`",
  "- Producers: set `enable.idempotence=true`, so that resent messages are stored once.",
  "- Not available: transactions (`transactional.id` is rejected immediately), KIP-848 groups (`group.protocol=classic`, which is the",
  "  default), share groups, message formats 0 and 1 (clients older than 0.11).",
  "- `message.timestamp.type` is `CreateTime`, replication factor and `min.insync.replicas` are 1; other values are rejected.",
  "- Topic names must not start with `__`.",
  "",
];

function writePage(): void {
  const rows = clients.map((client) => {
    const version = client.readVersion() ?? "not installed";
    const source = client.debianPackage === undefined ? "npm" : `Debian ${client.debianPackage}`;
    return `| ${[client.name, version, source, shown.get(client.name)?.join("; ") ?? "not run"].join(" | ")} |`;
  });
  writeFileSync(
    page,
    [
      "# Kafka clients tested with messaging",
      "",
      "Each row is a test in `services/pulse/test/kafka/clients` against a broker that stores messages on disk.",
      "`PLATFORM_CLIENTS_TABLE=write npm test -- services/pulse/test/kafka/clients` rewrites this page.",
      "",
      "| client | version | package | tested |",
      "|---|---|---|---|",
      ...rows,
      "",
      ...remarks,
    ].join("\n"),
  );
}
