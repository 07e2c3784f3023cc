// The pages "Messaging", "MQTT", "STOMP" and "Object storage": their commands run as they are, but for ports and folder.
import assert from "node:assert/strict";
import { copyFileSync, mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  anyPort,
  find,
  findStarted,
  makeFolder,
  parseEnv,
  run,
} from "@platform/testing/platform-process";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";
import { readCommands } from "./page.ts";
import { skipWithout, typeCommands } from "./terminal.ts";

const skip = skipWithout(["bash", "curl", "kcat", "aws", "mosquitto_pub", "mosquitto_sub"]);

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const folder = makeFolder();
let up: ReturnType<typeof run>;
let ports: [fixed: string, actual: string][];

before(async () => {
  if (skip !== false) return;
  const backups = join(folder, "backups");
  mkdirSync(backups);
  up = run(["up", "--json", "--data", join(folder, "data"), ...anyPort], {
    PLATFORM_VAULT_BACKUP_DIR: backups,
  });
  const started = await up.waitFor(findStarted);
  const portOf = (service: string, listener: string): string =>
    String(find(started, service).listeners.find(({ name }) => name === listener)!.port);
  ports = [
    ["8082", portOf("pulse", "http")],
    ["9092", portOf("pulse", "kafka")],
    ["1883", portOf("pulse", "mqtt")],
    ["61613", portOf("pulse", "stomp")],
    ["9000", portOf("vault", "http")],
    ["9001", portOf("vault", "admin")],
  ];
});
after(async () => {
  if (skip !== false) return;
  up.child.kill("SIGTERM");
  await up.exit;
});

/** In place of `nc -q1 localhost`, of which there are several: sends its input and shows a second of answers. */
const NETCAT = `"${process.execPath}" -e '
  const socket = require("node:net").connect(process.argv[1], "127.0.0.1");
  process.stdin.pipe(socket, { end: false });
  socket.pipe(process.stdout);
  setTimeout(() => socket.destroy(), 1_000);'`;

function portAt(fixed: string): string {
  return ports.find(([known]) => known === fixed)![1];
}

/** Types the commands of a page; subscriptions end after a few seconds. */
function type(page: string): Promise<string> {
  const script = readCommands(page)
    .join("\n")
    .replaceAll(/^curl -N .*$/gm, "timeout 5 $& || true")
    .replaceAll(/^mosquitto_sub /gm, `timeout 5 mosquitto_sub -p ${portAt("1883")} `)
    .replaceAll(/^mosquitto_pub /gm, `mosquitto_pub -p ${portAt("1883")} `)
    .replaceAll(/\bnc -q1 localhost (\d+)/g, (_all, port) => `${NETCAT} ${portAt(port)}`)
    .concat("\nwait || true");
  return typeCommands(script, { folder, ports });
}

test("messaging: publishing, subscribing, topics, groups and Kafka", { skip }, async () => {
  const out = await type("messaging.md");
  assert.ok(!out.includes("urn:platform:error"), out);
  assert.match(out, /^data: \{"topic":"orders",.*"payload":"first"/m);
  assert.match(out, /"count":2,"results":.*"scheduled_for"/);
  assert.match(out, /"name":"invoices".*"partitions":4/);
  assert.match(out, /"group":"billing","topic":"orders"/);
  assert.match(out, /"replayed":\d/);
  assert.match(out, /^hello$/m);
});

test("MQTT: a retained message of the tenant of applications", { skip }, async () => {
  const out = await type("mqtt.md");
  assert.ok(!out.includes("urn:platform:error"), out);
  assert.match(out, /^21\.5$/m);
});

test("STOMP: a receipt, of a topic of the tenant of applications", { skip }, async () => {
  const out = await type("stomp.md");
  assert.match(out, /^CONNECTED$[^]*\0RECEIPT\nreceipt-id:1$/m);
  const { PLATFORM_PULSE_TOKEN: token } = parseEnv(
    readFileSync(join(folder, "data/credentials.env"), "utf8"),
  );
  const list = async (tenant: string): Promise<string[]> => {
    const response = await fetch(`http://localhost:${portAt("8082")}/api/v1/topics${tenant}`, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { topics } = (await response.json()) as { topics: { name: string }[] };
    return topics.map(({ name }) => name);
  };
  assert.ok((await list("?tenant=main")).includes("orders"));
  assert.deepEqual(await list(""), [], "no page writes to topics that applications do not see");
});

test("asking storage: S3's form and records alone", { skip }, async () => {
  const out = await type("asking-storage.md");
  assert.match(out, /^Berlin,120\nParis,300$/m);
  assert.match(out, /^\{"city":"Berlin","visits":300\}$/m);
  assert.match(out, /"rows":\[\["csv",1,\d+\]\]/);
  assert.match(out, /"results":\[\{"key":"docs\/tea.txt",[^}]*\},\{"key":"docs\/coffee.txt"/);
  assert.match(out, /"results":\[\{"key":"docs\/coffee.txt"[^}]*\}\],"searched":3/);
  assert.match(
    out,
    /"interpreted":\{"by":"grammar","filters":\{"extension":"csv"\},"aggregate":"count"\},"answer":\{"count":1,/,
  );
  assert.match(out, /"limit":2\},"results":\[\{"key":"docs\/coffee.txt"/);
  assert.ok(!out.includes('"code"'), out);
});

test("code on objects: on request, by a trigger, by a pipeline", { skip }, async () => {
  for (const name of ["csv2json.wasm", "redact.wasm"])
    copyFileSync(join(REPOSITORY, "examples/guests", name), join(folder, name));
  const out = await type("code-on-objects.md");
  assert.match(out, /^\{"name":"Ann","mail":"\[e-mail\]"\}$/m);
  assert.match(out, /"key":"out\/people\.json","version_id":"null"/);
  assert.match(out, / again\.json$/m);
  assert.match(out, /"trigger":"to-json","key":"in\/again\.csv".*"outcome":"done"/);
  assert.match(out, / people\.csv$/m);
  assert.match(out, /^\S+ +pipeline +completed +2 +0 /m);
  assert.ok(!out.includes('"code"'), out);
});

test("cold data: a remote, a sweep, a restore and the way back", { skip }, async () => {
  await using far = await StagedVault.start({ folder: join(folder, "far") });
  const { accessKey, secretKey } = vaultRoot;
  const variables = `export FAR_URL=${far.url} FAR_KEY=${accessKey} FAR_SECRET=${secretKey}\n`;
  const script = variables + readCommands("cold-data.md").join("\n");
  const out = await typeCommands(script, { folder, ports });
  assert.match(out, /"name":"far".*"state":"unknown"/);
  assert.match(out, /"outcome":"ok","steps":/);
  assert.match(out, /"scanned":1,"moved":1,"bytes":300000/);
  assert.match(out, /"COLD"/);
  assert.match(out, /^same$/m);
  assert.match(out, /ongoing-request=\\"false\\"/);
  assert.ok(!out.includes(secretKey), out);
  assert.ok(!out.includes('"code"'), out);
});

test("encryption keys: a named key, a default, a disabled key, rotations", { skip }, async () => {
  const out = await type("encryption-keys.md");
  assert.match(out, /"name":"invoices"/);
  assert.match(out, /"aws:kms",\s+"arn:objstore:kms:::key\/[0-9a-f-]{36}"/);
  assert.match(out, /^"aws:kms"$/m);
  assert.match(out, /disabled: \d+$/m);
  assert.match(out, /42 EUR$/m);
  assert.match(out, /"kind":"rewrap"/);
  assert.equal(out.match(/"state":"enabled"/g)?.length, 4, out);
});

test("a second copy: replication, a repository in a remote, and federation", { skip }, async () => {
  await using second = await StagedVault.start({ folder: join(folder, "second") });
  const { accessKey, secretKey } = vaultRoot;
  const variables = `export SECOND_URL=${second.url} SECOND_KEY=${accessKey} SECOND_SECRET=${secretKey}\n`;
  const script = variables + readCommands("second-copy.md").join("\n");
  const out = await typeCommands(script, { folder, ports });
  assert.match(out, /"COMPLETED"/);
  assert.match(out, /"REPLICA",\s+"[A-Za-z0-9_-]{32}"/);
  assert.match(out, /"id":"all",.*"pending":0,"failed":0/);
  assert.match(out, /"items":\[\{"id":"\d{8}T\d{9}Z-/);
  assert.match(out, / far-attic$/m);
  assert.match(out, /^dear$/m);
  assert.ok(!out.includes(secretKey), out);
  assert.ok(!out.includes('"code"'), out);
});

test("jobs: a copy, and a bucket as it was", { skip }, async () => {
  const out = await type("jobs.md");
  assert.match(out, /"state": "completed"/);
  assert.match(out, /^\S+ +rewind +completed +3 +0 /m);
  const listed = out.match(/ [123]\.txt$/gm) ?? [];
  assert.equal(listed.length, 9, out);
  assert.match(out, /"operation": "restore"/);
  assert.match(out, /^\S+ +untag +cancelled /m);
  assert.match(out, /"items":\[\{"id":"\d{8}T\d{9}Z-/);
});

test("object storage: objects, links, versions, lifecycle and quota", { skip }, async () => {
  const out = await type("storage.md");
  assert.ok(!out.includes("urn:platform:error"), out);
  assert.match(out, / 6 hello\.txt$/m);
  assert.match(out, /^hello$/m);
  assert.match(out, /2026\/hello\.txt\s+\S+\s+True/);
  assert.match(out, /"max_bytes": ?1073741824/);
});
