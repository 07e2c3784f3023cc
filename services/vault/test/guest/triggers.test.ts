// Triggers of buckets: outputs exactly once, rings, rights, retries, and a service that is killed.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import { S3TestClient } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { complains, identity, lowerCase, putModule } from "./guests.ts";

/** Kills of the service under load. */
const KILLS = Number(process.env["VAULT_TRIGGER_KILLS"] ?? 5);
const VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

interface Run {
  trigger: string;
  key: string;
  outcome: string;
  bytes: number;
  reason?: string;
  stderr?: string;
}

let serving: Serving;
before(async () => {
  serving = await serve();
  await putModule(serving, "copy", identity);
  await putModule(serving, "lower", lowerCase);
  await putModule(serving, "complains", complains);
});
after(() => serving[Symbol.asyncDispose]());

async function makeBucket(bucket: string, isVersioned = false): Promise<void> {
  await serving.s3.must("PUT", `/${bucket}`);
  if (isVersioned) await serving.s3.must("PUT", `/${bucket}?versioning`, { body: VERSIONED });
}

function describe(id: string, target: { bucket: string; key: string }, more: object = {}) {
  return {
    id,
    events: ["objstore:ObjectCreated:*"],
    module: "copy",
    target,
    enabled: true,
    ...more,
  };
}

const put = (bucket: string, ...triggers: object[]) =>
  serving.s3.send("PUT", `/${bucket}?triggers`, { body: JSON.stringify({ triggers }) });

async function mustPut(bucket: string, ...triggers: object[]): Promise<void> {
  const { status, text } = await put(bucket, ...triggers);
  assert.equal(status, 200, text);
}

async function listRuns(bucket: string): Promise<Run[]> {
  const { text } = await serving.s3.must("GET", `/${bucket}?triggers&runs`);
  return (JSON.parse(text) as { runs: Run[] }).runs;
}

async function listKeys(bucket: string): Promise<string[]> {
  const { text } = await serving.s3.must("GET", `/${bucket}?list-type=2`);
  return Array.from(text.matchAll(/<Key>([^<]*)<\/Key>/g), ([, key]) => key!);
}

/** Keys of versions, one for each. */
async function listVersions(bucket: string): Promise<string[]> {
  const keys: string[] = [];
  for (let query = ""; ;) {
    const { text } = await serving.s3.must("GET", `/${bucket}?versions${query}`);
    keys.push(...Array.from(text.matchAll(/<Version><Key>([^<]*)<\/Key>/g), ([, key]) => key!));
    const next = /<NextKeyMarker>([^<]*)<.*<NextVersionIdMarker>([^<]*)</.exec(text);
    if (next === null) return keys;
    query = `&key-marker=${next[1]}&version-id-marker=${next[2]}`;
  }
}

test("a new object is transformed under the key of its template, and the run is listed", async () => {
  const { s3 } = serving;
  await makeBucket("photos");
  const target = {
    bucket: "photos",
    key: "thumbs/{dir}{stem}-small{ext}",
    content_type: "text/plain",
  };
  const more = { module: "lower", filter: { prefix: "in/", suffix: ".txt" } };
  await mustPut("photos", describe("thumb", target, more));
  await s3.must("PUT", "/photos/in/a.b.txt", { body: "HELLO" });
  await s3.must("PUT", "/photos/in/a.png", { body: "HELLO" });
  const made = await waitFor(async () => {
    const answer = await s3.send("GET", "/photos/thumbs/in/a.b-small.txt");
    return answer.status === 200 ? answer : undefined;
  }, "the output");
  assert.deepEqual([made.text, made.headers["content-type"]], ["hello", "text/plain"]);
  const [run, ...others] = await listRuns("photos");
  assert.deepEqual(
    [run?.trigger, run?.key, run?.outcome, run?.bytes],
    ["thumb", "in/a.b.txt", "done", 5],
  );
  assert.equal(others.length, 0);
  const document = JSON.parse((await s3.must("GET", "/photos?triggers")).text) as {
    triggers: { id: string; module_sha256: string }[];
  };
  assert.match(document.triggers[0]!.module_sha256, /^[0-9a-f]{64}$/);
  await s3.must("DELETE", "/photos?triggers");
  assert.equal((await s3.send("GET", "/photos?triggers")).code, "NoSuchTriggers");
});

test("a trigger keeps the version of its module unless it follows the latest", async () => {
  const { s3 } = serving;
  await putModule(serving, "moving", identity);
  await makeBucket("moving");
  await mustPut(
    "moving",
    describe(
      "kept",
      { bucket: "moving", key: "kept/{name}" },
      { module: "moving", filter: { prefix: "in/" } },
    ),
    describe(
      "latest",
      { bucket: "moving", key: "latest/{version}-{name}" },
      { module: "moving@latest", filter: { prefix: "in/" } },
    ),
  );
  await putModule(serving, "moving", lowerCase);
  await s3.must("PUT", "/moving/in/a", { body: "ABC" });
  await waitFor(async () => (await listKeys("moving")).length === 3, "both outputs");
  assert.equal((await s3.must("GET", "/moving/kept/a")).text, "ABC");
  assert.equal((await s3.must("GET", "/moving/latest/null-a")).text, "abc");
});

test("a ring of three buckets ends after four runs, and no trigger fires itself", async () => {
  const { s3 } = serving;
  for (const bucket of ["ring-a", "ring-b", "ring-c"]) await makeBucket(bucket, true);
  await mustPut("ring-a", describe("a", { bucket: "ring-b", key: "{key}" }));
  await mustPut("ring-b", describe("b", { bucket: "ring-c", key: "{key}" }));
  await mustPut("ring-c", describe("c", { bucket: "ring-a", key: "{key}" }));
  await s3.must("PUT", "/ring-a/x", { body: "X" });
  const count = async (): Promise<number[]> =>
    Promise.all(
      ["ring-a", "ring-b", "ring-c"].map(async (name) => (await listVersions(name)).length),
    );
  await waitFor(async () => (await count()).join() === "2,2,1", "four runs");
  await new Promise((resolve) => setTimeout(resolve, 700));
  assert.deepEqual(await count(), [2, 2, 1]);

  await makeBucket("self", true);
  await mustPut("self", describe("self", { bucket: "self", key: "copy/{name}" }));
  await s3.must("PUT", "/self/x", { body: "X" });
  await waitFor(async () => (await listVersions("self")).length === 2, "the copy");
  await new Promise((resolve) => setTimeout(resolve, 700));
  assert.deepEqual(await listVersions("self"), ["copy/x", "x"]);
});

test("in an unversioned bucket the latest bytes count, and a deleted object is no fault", async () => {
  const { s3 } = serving;
  await makeBucket("plain");
  await makeBucket("plain-out", true);
  await mustPut("plain", describe("copy", { bucket: "plain-out", key: "{key}" }));
  for (let n = 0; n < 20; n += 1) await s3.must("PUT", "/plain/a", { body: `body ${n}` });
  await s3.must("PUT", "/plain/gone", { body: "x" });
  await s3.must("DELETE", "/plain/gone");
  await waitFor(async () => {
    const answer = await s3.send("GET", "/plain-out/a");
    return answer.text === "body 19";
  }, "the last body");
  await waitFor(async () => {
    const { kinds } = await readJson<{ kinds: { kind: string; waiting: number; dead: number }[] }>(
      callJson(serving, "GET", "/admin/tasks"),
    );
    const trigger = kinds.find(({ kind }) => kind === "trigger");
    return trigger?.waiting === 0 && trigger.dead === 0;
  }, "the end of all tasks");
});

test("a guest that fails makes a dead letter with its standard error, which can be retried", async () => {
  const { s3 } = serving;
  await makeBucket("broken");
  await mustPut(
    "broken",
    describe("bad", { bucket: "broken", key: "out/{name}" }, { module: "complains" }),
  );
  await s3.must("PUT", "/broken/a", { body: "the reason\nmore" });
  const dead = async () =>
    (
      await readJson<{ items: { key: string; reason: string; rule: string }[] }>(
        callJson(serving, "GET", "/admin/tasks/dead?bucket=broken"),
      )
    ).items;
  await waitFor(async () => (await dead()).length === 1, "the dead letter");
  const [letter] = await dead();
  assert.deepEqual([letter?.key, letter?.rule], ["a", "bad"]);
  assert.match(letter!.reason, /exit code 1/);
  const [run] = await listRuns("broken");
  assert.deepEqual([run?.outcome, run?.stderr], ["dead", "the reason"]);
  await mustPut(
    "broken",
    describe("bad", { bucket: "broken", key: "out/{name}" }, { module: "copy" }),
  );
  await callJson(serving, "POST", "/admin/tasks/dead/retry", { bucket: "broken" });
  await waitFor(async () => (await listKeys("broken")).includes("out/a"), "the output");
  assert.equal((await dead()).length, 0);
});

test("an object with a customer's key is a dead letter at once, since nobody gives the key", async () => {
  const { s3 } = serving;
  await makeBucket("customer");
  await mustPut("customer", describe("copy", { bucket: "customer", key: "out/{name}" }));
  const key = Buffer.alloc(32, 7);
  await s3.must("PUT", "/customer/a", {
    body: "x",
    headers: {
      "x-amz-server-side-encryption-customer-algorithm": "AES256",
      "x-amz-server-side-encryption-customer-key": key.toString("base64"),
      "x-amz-server-side-encryption-customer-key-md5": createHash("md5")
        .update(key)
        .digest("base64"),
    },
  });
  const [run] = await waitFor(async () => {
    const runs = await listRuns("customer");
    return runs.length === 0 ? undefined : runs;
  }, "the run");
  assert.equal(run?.outcome, "dead");
  assert.match(run.reason ?? "", /InvalidRequest: .*Server Side Encryption/);
  const { items } = await readJson<{ items: { attempts: number }[] }>(
    callJson(serving, "GET", "/admin/tasks/dead?bucket=customer"),
  );
  assert.deepEqual(
    items.map(({ attempts }) => attempts),
    [1],
  );
  assert.deepEqual(await listKeys("customer"), ["a"]);
});

test("a trigger runs with the rights that its maker has then", async () => {
  const { s3 } = serving;
  await makeBucket("theirs");
  await makeBucket("others");
  const key = await addReader(serving, "theirs", ["s3:*"]);
  const client = new S3TestClient(serving.vault.port, key);
  const triggers = [
    describe("fine", { bucket: "theirs", key: "out/{name}" }, { filter: { prefix: "in/" } }),
    describe("foreign", { bucket: "others", key: "{key}" }, { filter: { prefix: "in/" } }),
  ];
  const body = JSON.stringify({ triggers });
  assert.equal((await client.send("PUT", "/theirs?triggers", { body })).status, 200);
  assert.equal((await client.send("PUT", "/others?triggers", { body })).status, 403);
  await s3.must("PUT", "/theirs/in/a", { body: "x" });
  await waitFor(async () => (await listRuns("theirs")).length === 2, "both runs");
  const outcomes = (await listRuns("theirs")).map(({ trigger, outcome }) =>
    [trigger, outcome].join(),
  );
  assert.deepEqual(outcomes.toSorted(), ["fine,done", "foreign,dead"]);
  assert.deepEqual(await listKeys("others"), []);
  await callJson(serving, "PATCH", "/api/v1/users/reader", { enabled: false });
  await callJson(serving, "PUT", "/api/v1/users/reader", {
    enabled: false,
    policies: {},
    namespaces: [],
  });
  await s3.must("PUT", "/theirs/in/b", { body: "x" });
  await waitFor(async () => (await listRuns("theirs")).length === 4, "two more runs");
  const [last] = await listRuns("theirs");
  assert.equal(last?.outcome, "dead");
  assert.match(last.reason ?? "", /disabled/);
  assert.deepEqual(await listKeys("theirs"), ["in/a", "in/b", "out/a"]);
  client.close();
});

test("each run is in the audit log, under the name of the trigger's maker", async () => {
  const { s3, vault } = serving;
  await makeBucket("logged");
  await mustPut("logged", describe("copy", { bucket: "logged", key: "out/{name}" }));
  await s3.must("PUT", "/logged/a", { body: "x" });
  await waitFor(async () => (await listRuns("logged")).length === 1, "the run");
  // The end of the service writes what it holds.
  await vault.stop();
  await vault.start();
  const { text } = await s3.must("GET", "/system-access-logs?list-type=2");
  const lines: { operation: string; bucket: string; key: string; requester: string }[] = [];
  for (const [, key] of text.matchAll(/<Key>([^<]*)<\/Key>/g)) {
    const log = (await s3.must("GET", `/system-access-logs/${key}`)).text;
    for (const line of log.trim().split("\n")) lines.push(JSON.parse(line) as (typeof lines)[0]);
  }
  assert.deepEqual(
    lines
      .filter(({ bucket, operation }) => bucket === "logged" && operation === "TransformObject")
      .map(({ key, requester }) => [key, requester]),
    [["a", "root"]],
  );
});

test("triggers that could not work are refused with the place of the fault", async () => {
  await makeBucket("refusing");
  const target = { bucket: "refusing", key: "out/{name}" };
  for (const [trigger, reason] of [
    [describe("x", target, { events: ["objstore:ObjectRemoved:*"] }), /triggers\.0\.events\.0/],
    [describe("x", target, { module: "nothing" }), /Registered modules/],
    [describe("x", { bucket: "refusing", key: "{key}" }), /the object itself/],
    [describe("x", { bucket: "refusing", key: "{secret}" }), /\{secret\}/],
    [describe("x", { bucket: "nowhere", key: "{key}" }), /bucket/],
    [describe("x", { bucket: "system-modules", key: "{key}" }), /Denied/],
    [describe("../x", target), /triggers\.0\.id/],
    [describe("x", target, { timeout_ms: 300_001 }), /timeout_ms/],
    [describe("x", target, { more: 1 }), /more/],
  ] as const) {
    const { status, text } = await put("refusing", trigger);
    assert.ok(status >= 400 && status < 500, text);
    assert.match(text, reason);
  }
  const twice = await put("refusing", describe("x", target), describe("x", target));
  assert.match(twice.text, /not unique/);
  // A key of the source cannot leave the folder of the target.
  const { s3 } = serving;
  await mustPut(
    "refusing",
    describe("x", { bucket: "refusing", key: "out/{key}" }, { filter: { prefix: "in/" } }),
  );
  await s3.must("PUT", "/refusing/in/..%2F..%2Fx", { body: "x" });
  await waitFor(async () => (await listRuns("refusing")).length === 1, "the run");
  const [run] = await listRuns("refusing");
  assert.equal(run?.outcome, "dead");
  assert.match(run.reason ?? "", /leave the folder/);
});

test("after kills under load, each version has one output", async () => {
  const { s3, vault } = serving;
  await makeBucket("load", true);
  await makeBucket("load-out", true);
  await mustPut("load", describe("load", { bucket: "load-out", key: "{key}" }));
  const acknowledged: string[] = [];
  let next = 0;
  for (let kill = 0; kill < KILLS; kill += 1) {
    const down = new AbortController();
    const writers = Array.from({ length: 8 }, async () => {
      while (!down.signal.aborted) {
        const key = `k${next++ % 40}`;
        const sent = await s3.send("PUT", `/load/${key}`, { body: key }).catch(() => undefined);
        if (sent?.status === 200) acknowledged.push(key);
      }
    });
    await new Promise((resolve) => setTimeout(resolve, 150 + kill * 60));
    down.abort();
    await vault.kill();
    await Promise.all(writers);
    await vault.start();
  }
  const inputs = await listVersions("load");
  assert.ok(inputs.length >= acknowledged.length && acknowledged.length > 0);
  await waitFor(
    async () => (await listVersions("load-out")).length >= inputs.length,
    "all outputs",
    60_000,
  );
  await new Promise((resolve) => setTimeout(resolve, 300));
  assert.deepEqual((await listVersions("load-out")).toSorted(), inputs.toSorted());
  const { kinds } = await readJson<{ kinds: { kind: string; waiting: number }[] }>(
    callJson(serving, "GET", "/admin/tasks"),
  );
  assert.equal(kinds.find(({ kind }) => kind === "trigger")?.waiting, 0);
});
