// Replication and cold tier of a bucket as JSON: documents, states, sweeps and rights. Transitions of lifecycle rules stay in theirs.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { LyingS3 } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { makeBytes } from "../store/fixture.ts";
import { addReader, callJson, readJson } from "./json-api.ts";
import type { Answer, Ask } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

const API = "/api/v1/buckets";
const VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";

let serving: Serving;
let remote: LyingS3;

before(async () => {
  [serving, remote] = [await serve(), await LyingS3.start()];
  remote.settings.set("versioning", VERSIONED);
  const { endpoint } = remote;
  const far = { name: "far", endpoint, access_key: "a", secret_key: "hidden-secret" };
  assert.equal((await call("POST", "/admin/remotes", far)).status, 201);
  for (const name of ["moved", "sent"])
    assert.equal((await call("POST", API, { name })).status, 201);
  await call("PUT", `${API}/sent/config/versioning`, { Status: "Enabled" });
});
after(async () => {
  await serving[Symbol.asyncDispose]();
  await remote[Symbol.asyncDispose]();
});

function call(method: string, path: string, body?: object, ask?: Ask): Promise<Answer> {
  return callJson(serving, method, path, body, ask);
}

interface Problem {
  errors: { path: string; message: string }[];
}

const RULE = {
  ID: "copy",
  Priority: 1,
  Filter: { And: { Prefix: "a/", Tags: [{ Key: "k", Value: "v" }] } },
  Status: "Enabled",
  SourceSelectionCriteria: { ReplicaModifications: { Status: "Enabled" } },
  DeleteMarkerReplication: { Status: "Disabled" },
  Destination: {
    Bucket: "arn:objstore:replication::far:there",
    StorageClass: "STANDARD_IA",
    Metrics: { Status: "Enabled", EventThreshold: { Minutes: 15 } },
  },
};

test("replication rules are read as they were put, and replaced only if they are still the ones that were read", async () => {
  const path = `${API}/sent/config/replication`;
  assert.equal((await call("GET", path)).status, 404);
  const document = { Role: "arn:aws:iam:::role/r", Rules: [RULE] };
  const put = await call("PUT", path, document);
  assert.equal(put.status, 204, put.text);
  const shown = await call("GET", path);
  assert.deepEqual(JSON.parse(shown.text), document);
  const stale = { headers: { "if-match": '"x"' } };
  assert.equal((await call("PUT", path, document, stale)).status, 412);
  const { settings } = await readJson<{ settings: string[] }>(call("GET", `${API}/sent`));
  assert.ok(settings.includes("replication"), settings.join());
  const other = { ...RULE, Destination: { Bucket: "arn:objstore:replication::none:there" } };
  const { errors } = await readJson<Problem>(call("PUT", path, { Rules: [other] }), 400);
  assert.equal(errors[0]!.path, "Rules.0.Destination.Bucket");
});

test("the state of a rule has what it sent, since when, and what was refused", async () => {
  const path = `${API}/sent/config/replication`;
  const rule = { ...RULE, Filter: { Prefix: "" }, DeleteMarkerReplication: { Status: "Enabled" } };
  await call("PUT", path, { Rules: [rule] });
  remote.judge = ({ key }) =>
    key === "refused" ? { kind: "refuse", status: 400, code: "InvalidArgument" } : undefined;
  for (const key of ["fine", "refused"])
    await serving.s3.must("PUT", `/sent/${key}`, { body: key });
  interface State {
    id: string;
    completed: number;
    completed_bytes: number;
    pending: number;
    failed: number;
    counted_since: string;
    failures: { key: string; reason: string }[];
  }
  const state = await waitFor(async () => {
    const { rules } = await readJson<{ rules: State[] }>(call("GET", `${path}/status`));
    return rules[0]!.pending === 0 ? rules[0]! : undefined;
  }, "the end of both");
  remote.judge = () => undefined;
  assert.deepEqual(
    [state.id, state.completed, state.completed_bytes, state.failed],
    ["copy", 1, 4, 1],
  );
  assert.equal(state.failures[0]!.key, "refused");
  assert.ok(Date.parse(state.counted_since) <= Date.now());
  await serving.vault.kill();
  await serving.vault.start();
  const { rules } = await readJson<{ rules: State[] }>(call("GET", `${path}/status`));
  assert.deepEqual([rules[0]!.completed, rules[0]!.failed], [0, 1]);
  assert.ok(rules[0]!.counted_since > state.counted_since, "the counts began again");
  assert.equal((await call("DELETE", path)).status, 204);
  assert.equal((await call("GET", `${path}/status`)).status, 404);
});

test("a cold tier is put, swept and removed, and nothing shows its keys", async () => {
  const path = `${API}/moved/config/cold-tier`;
  const unknown = { days: 0, remote: "none", bucket: "cold" };
  const { errors } = await readJson<Problem>(call("PUT", path, unknown), 400);
  assert.deepEqual(
    [errors[0]!.path, errors[0]!.message],
    ["remote", "there is no remote none for this bucket"],
  );
  assert.equal((await call("POST", `${path}/sweep`)).status, 404);
  assert.equal(
    (await call("PUT", path, { ...unknown, remote: "far", minimum_size: 0 })).status,
    204,
  );
  const tier = { days: 0, prefix: "", remote: "far", bucket: "cold", minimum_size: 0 };
  assert.deepEqual(await readJson(call("GET", path)), tier);
  await serving.s3.must("PUT", "/moved/large", { body: makeBytes(200_000) });
  await serving.s3.must("PUT", "/moved/small", { body: "in the index" });
  const begun = await readJson(call("POST", `${path}/sweep`), 202);
  assert.ok(typeof begun["id"] === "string");
  interface Status {
    remote: { name: string; state: string };
    sweep: { state: string; moved: number; skipped: number; details: { key: string }[] };
  }
  const { remote: place, sweep } = await waitFor(async () => {
    const status = await readJson<Status>(call("GET", `${path}/status`));
    return status.sweep.state === "running" ? undefined : status;
  }, "the end of the sweep");
  assert.deepEqual([place.name, place.state], ["far", "up"]);
  assert.deepEqual([sweep.state, sweep.moved, sweep.skipped], ["done", 1, 1]);
  assert.equal(sweep.details[0]!.key, "small");
  const own = {
    bucket: "cold",
    endpoint: remote.endpoint,
    access_key: "a",
    secret_key: "hidden-secret",
  };
  assert.equal((await call("PUT", path, own)).status, 204);
  for (const shown of [await call("GET", path), await call("GET", `${path}/status`)])
    assert.doesNotMatch(shown.text, /hidden-secret/);
  assert.equal((await call("DELETE", path)).status, 204);
  assert.equal((await call("GET", path)).status, 404);
});

test("transitions of lifecycle rules survive being read and put again", async () => {
  const path = `${API}/moved/config/lifecycle`;
  const rules = [
    {
      ID: "r",
      Filter: { Prefix: "logs/" },
      Status: "Enabled",
      Transitions: [{ Days: 30, StorageClass: "COLD" }],
      NoncurrentVersionTransitions: [
        { NoncurrentDays: 7, NewerNoncurrentVersions: 2, StorageClass: "COLD" },
      ],
    },
  ];
  await call("PUT", `${API}/moved/config/cold-tier`, { remote: "far", bucket: "cold" });
  const put = await call("PUT", path, { Rules: rules });
  assert.equal(put.status, 204, put.text);
  const again = await readJson<object>(call("GET", path));
  assert.deepEqual(again, { Rules: rules });
  assert.equal((await call("PUT", path, again)).status, 204);
  const { text } = await serving.s3.must("GET", "/moved?lifecycle");
  assert.match(text, /<Transition><Days>30<.*<NoncurrentVersionTransition>/);
  await call("DELETE", `${API}/moved/config/cold-tier`);
  const { blocked } = await readJson<{ blocked: { rule: string; storage_class: string }[] }>(
    call("GET", `${API}/moved/config/cold-tier/status`),
  );
  assert.deepEqual([blocked[0]!.rule, blocked[0]!.storage_class], ["r", "COLD"]);
});

test("a reader may neither put these settings nor sweep, nor read them without the right", async () => {
  const key = await addReader(serving, "moved", ["s3:ListBucket", "s3:GetLifecycleConfiguration"]);
  const ask = { key };
  const tier = `${API}/moved/config/cold-tier`;
  const replication = `${API}/moved/config/replication`;
  assert.equal((await call("GET", `${tier}/status`, undefined, ask)).status, 200);
  assert.equal((await call("POST", `${tier}/sweep`, undefined, ask)).status, 403);
  assert.equal((await call("PUT", tier, {}, ask)).status, 403);
  assert.equal((await call("DELETE", tier, undefined, ask)).status, 403);
  for (const path of [replication, `${replication}/status`])
    assert.equal((await call("GET", path, undefined, ask)).status, 403, path);
  assert.equal((await call("PUT", replication, {}, ask)).status, 403);
  const { denied } = await readJson<{ denied: Record<string, string> }>(
    call("GET", `${API}/moved/permissions`, undefined, ask),
  );
  assert.equal(denied["cold-tier"], "s3:PutLifecycleConfiguration");
  assert.equal(denied["replication"], "s3:GetReplicationConfiguration");
});
