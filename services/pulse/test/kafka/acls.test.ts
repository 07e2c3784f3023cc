// Kafka's ACL API over topic rules: kafkajs, kafka-python and confluent_kafka create, list and delete them.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import kafkajs, { type AclOperationTypes as AclOperation, type Admin } from "kafkajs";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { makeToken, startFeed } from "../fixture/tokens.ts";

const { AclOperationTypes, AclPermissionTypes, AclResourceTypes, Kafka, logLevel } = kafkajs;
const { ResourcePatternTypes } = kafkajs;
const SCRIPT = fileURLToPath(new URL("clients/acls.py", import.meta.url));
const OPERATOR = { authorization: "Bearer operator-token" };

/** A test, or the whole file: the end at which something is cleaned up. */
interface Ending {
  after(done: () => unknown): void;
}

let pulse: PulseHere;
let admin: Admin;
const endings: (() => unknown)[] = [];

before(async () => {
  const t: Ending = { after: (done) => void endings.push(done) };
  const feed = await startFeed(t);
  pulse = await startPulseHere(t, { ...feed.env, PLATFORM_PULSE_TOKEN: "operator-token" });
  admin = await connectAdmin(t);
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

async function connectAdmin(t: Ending, password = "operator-token"): Promise<Admin> {
  const kafka = new Kafka({
    brokers: [`127.0.0.1:${pulse.kafkaPort}`],
    logLevel: logLevel.NOTHING,
    retry: { retries: 0 },
    sasl: { mechanism: "plain", username: "any", password },
  });
  const connected = kafka.admin();
  await connected.connect();
  t.after(() => connected.disconnect());
  return connected;
}

async function rulesOf(role: string): Promise<unknown> {
  const { body } = await pulse.get(`/api/v1/access/roles/${role}`, { headers: OPERATOR });
  return body.rules;
}

function allow(
  operation: AclOperation,
  resourceName: string,
  more: Partial<Parameters<Admin["createAcls"]>[0]["acl"][number]> = {},
) {
  return {
    resourceType: AclResourceTypes.TOPIC,
    resourceName,
    resourcePatternType: ResourcePatternTypes.LITERAL,
    principal: "Role:editor",
    host: "*",
    operation,
    permissionType: AclPermissionTypes.ALLOW,
    ...more,
  };
}

const ANY = {
  resourceType: AclResourceTypes.ANY,
  resourcePatternType: ResourcePatternTypes.ANY,
  operation: AclOperationTypes.ANY,
  permissionType: AclPermissionTypes.ANY,
};
const PREFIXED = { resourcePatternType: ResourcePatternTypes.PREFIXED };

test("ACLs are topic rules: they give rights to holders of the role, and are listed and deleted", async () => {
  const token = makeToken({ tenant: "acme", roles: ["editor"] });
  const publish = (topic: string) =>
    pulse.post("/api/v1/publish", { topic, payload: "x" }, { authorization: `Bearer ${token}` });
  assert.equal((await publish("notes.a")).status, 403);
  const { WRITE, READ, DESCRIBE, CREATE, DELETE, ALTER, ALTER_CONFIGS } = AclOperationTypes;
  await admin.createAcls({
    acl: [
      allow(WRITE, "notes.", PREFIXED),
      allow(DESCRIBE, "notes.", PREFIXED),
      allow(READ, "*"),
      ...[CREATE, DELETE, ALTER, ALTER_CONFIGS].map((operation) => allow(operation, "notes.main")),
    ],
  });
  const rules = [
    { topics: "notes.*.#", allow: ["publish"] },
    { topics: "#", allow: ["subscribe"] },
    { topics: "notes.main", allow: ["manage"] },
  ];
  assert.deepEqual(await rulesOf("editor"), rules);
  assert.equal((await publish("notes.a")).status, 200);
  assert.equal((await publish("notes")).status, 403, "a prefix does not match the level before it");

  const { resources } = await admin.describeAcls(ANY);
  assert.deepEqual(
    resources.map(({ resourceName, resourcePatternType, acls }) => [
      resourceName,
      resourcePatternType,
      acls.map(({ operation }) => operation),
    ]),
    [
      ["notes.", ResourcePatternTypes.PREFIXED, [WRITE]],
      ["*", ResourcePatternTypes.LITERAL, [READ]],
      ["notes.main", ResourcePatternTypes.LITERAL, [CREATE, DELETE, ALTER, ALTER_CONFIGS]],
    ],
  );
  const match = { ...ANY, resourcePatternType: ResourcePatternTypes.MATCH };
  const matching = await admin.describeAcls({ ...match, resourceName: "notes.a" });
  assert.deepEqual(matching.resources.map(({ resourceName }) => resourceName).sort(), [
    "*",
    "notes.",
  ]);

  const partly = { ...ANY, operation: ALTER };
  await assert.rejects(admin.deleteAcls({ filters: [partly] }));
  assert.deepEqual(await rulesOf("editor"), rules, "a part of a right is not deleted");
  const { filterResponses } = await admin.deleteAcls({ filters: [{ ...ANY, operation: WRITE }] });
  assert.deepEqual(
    filterResponses.flatMap(({ matchingAcls }) => matchingAcls.map((acl) => acl.resourceName)),
    ["notes."],
  );
  assert.equal((await publish("notes.a")).status, 403);
  await admin.deleteAcls({ filters: [ANY] });
  assert.equal(await rulesOf("editor"), undefined);
});

test("ALL is an ACL of its own: other operations do not select it, and it selects no others", async () => {
  const { ALL, READ, WRITE, CREATE, DELETE, ALTER, ALTER_CONFIGS } = AclOperationTypes;
  const manage = [CREATE, DELETE, ALTER, ALTER_CONFIGS];
  const list = async () => {
    const { resources } = await admin.describeAcls({ ...ANY, principal: "Role:editor" });
    return resources.flatMap(({ acls }) => acls.map(({ operation }) => operation));
  };
  const remove = async (operation: AclOperation) => {
    const { filterResponses } = await admin.deleteAcls({ filters: [{ ...ANY, operation }] });
    return filterResponses[0]!.matchingAcls.map((acl) => acl.operation);
  };
  await admin.createAcls({ acl: [allow(ALL, "a"), allow(WRITE, "a")] });
  await admin.createAcls({ acl: [allow(ALL, "a")] });
  assert.deepEqual(await list(), [ALL, WRITE]);
  assert.deepEqual(await remove(WRITE), [WRITE]);
  assert.deepEqual(await remove(READ), []);
  assert.deepEqual(await list(), [ALL]);
  await admin.createAcls({ acl: [READ, WRITE, ...manage].map((each) => allow(each, "a")) });
  assert.deepEqual(new Set(await list()), new Set([ALL, READ, WRITE, ...manage]));
  assert.deepEqual(await remove(ALL), [ALL]);
  assert.deepEqual(new Set(await list()), new Set([READ, WRITE, ...manage]));
  assert.deepEqual(await remove(WRITE), [WRITE]);
  assert.deepEqual(new Set(await list()), new Set([READ, ...manage]));
  await admin.deleteAcls({ filters: [ANY] });
  assert.equal(await rulesOf("editor"), undefined);
});

test("rules set over HTTP are listed as ACLs, also those of patterns", async () => {
  const rules = [
    { topics: "*", allow: ["subscribe"] },
    { topics: "a.*.b", allow: ["publish"] },
    { topics: "grün", allow: ["publish"] },
  ];
  await pulse.get("/api/v1/access/roles/reader", {
    method: "PUT",
    headers: { ...OPERATOR, "content-type": "application/json" },
    body: JSON.stringify({ rules }),
  });
  const { resources } = await admin.describeAcls({ ...ANY, principal: "Role:reader" });
  assert.deepEqual(
    resources.map(({ resourceName }) => resourceName),
    ["+", "a.*.b", "gr_xC3_xBCn"],
  );
});

test("ACLs that rules cannot express are refused, and nothing is stored for them", async () => {
  const { READ, CREATE, DESCRIBE, CLUSTER_ACTION } = AclOperationTypes;
  const refused = [
    allow(READ, "a", { permissionType: AclPermissionTypes.DENY }),
    allow(READ, "a", { host: "192.0.2.1" }),
    allow(READ, "a", { resourceType: AclResourceTypes.GROUP }),
    allow(READ, "a", { principal: "User:alice" }),
    allow(READ, "a", { principal: "Role:Not A Role" }),
    allow(READ, "ab", PREFIXED),
    allow(READ, "", {}),
    allow(READ, "a b"),
    allow(CREATE, "a"),
    allow(DESCRIBE, "a"),
    allow(CLUSTER_ACTION, "a"),
  ];
  for (const acl of refused) {
    await assert.rejects(admin.createAcls({ acl: [acl] }), { type: "INVALID_REQUEST" });
  }
  assert.equal(await rulesOf("editor"), undefined);
});

test("only operators may read and change ACLs", async (t) => {
  const scope = "pulse:publish pulse:subscribe pulse:manage";
  const user = await connectAdmin(t, makeToken({ tenant: "acme", scope }));
  const refusal = { type: "CLUSTER_AUTHORIZATION_FAILED" };
  await assert.rejects(user.describeAcls(ANY), refusal);
  await assert.rejects(user.createAcls({ acl: [allow(AclOperationTypes.READ, "a")] }), refusal);
  await assert.rejects(user.deleteAcls({ filters: [ANY] }), refusal);
});

for (const [library, module, name] of [
  ["kafka-python", "kafka", "ACL"],
  ["confluent_kafka", "confluent_kafka", "AclBinding"],
] as const) {
  const imported = ["-c", `from ${module}.admin import ${name}`];
  const isThere = spawnSync("/usr/bin/python3", imported).status === 0;
  const skip = isThere ? false : `${library} is missing, or too old for ACLs`;
  test(`${library} creates, lists and deletes ACLs`, { skip }, async () => {
    const run = async (command: string): Promise<unknown> => {
      const args = [SCRIPT, library, `127.0.0.1:${pulse.kafkaPort}`, "operator-token", command];
      const { stdout } = await promisify(execFile)("/usr/bin/python3", args, { timeout: 60_000 });
      return JSON.parse(stdout) as unknown;
    };
    await run("create");
    assert.deepEqual(await rulesOf("writer"), [{ topics: "shop.*.#", allow: ["publish"] }]);
    assert.deepEqual(await run("list"), ["Role:writer shop."]);
    assert.deepEqual(await run("refused"), "refused");
    await run("delete");
    assert.equal(await rulesOf("writer"), undefined);
  });
}
