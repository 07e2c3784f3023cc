// Replication with a destination that is away, slow or refuses, rules that cannot work, and what others have lost.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, test } from "node:test";
import { LyingS3 } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import { makeBytes } from "../store/fixture.ts";
import {
  addRemote,
  describeRule,
  listVersions,
  makeBucket,
  readStates,
  replicate,
  requireSame,
  settle,
  startTwoStores,
  type TwoStores,
} from "./stores.ts";

const VERSIONED = "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>";
const CUSTOMER_KEY = makeBytes(32, 9);

let stores: TwoStores;

before(async () => {
  stores = await startTwoStores();
});
after(() => stores[Symbol.asyncDispose]());

async function runJob(
  body: object,
): Promise<{ state: string; totals: { done: number; failed: number } }> {
  const { near } = stores;
  const { job_id } = await readJson<{ job_id: string }>(
    callJson(near, "POST", "/admin/batch", body),
    202,
  );
  const read = () =>
    readJson<{ state: string; totals: { done: number; failed: number } }>(
      callJson(near, "GET", `/admin/batch/${job_id}`),
    );
  await waitFor(
    async () => ["completed", "failed"].includes((await read()).state),
    "the job",
    30_000,
  );
  return read();
}

test("a destination that is down delays no request and loses nothing", async () => {
  const { near, far } = stores;
  await makeBucket(near, "down");
  await makeBucket(far, "down");
  await replicate(near, "down", "far");
  await far.vault.kill();
  for (let n = 0; n < 40; n += 1) await near.s3.must("PUT", `/down/k${n % 20}`, { body: `${n}` });
  await near.s3.must("DELETE", "/down/k0");
  const pending = await near.s3.must("HEAD", "/down/k1");
  assert.equal(pending.headers["x-amz-replication-status"], "PENDING");
  await waitFor(
    async () => (await readStates(near, "down"))[0]!.paused_until !== null,
    "the pause",
  );
  const [state] = await readStates(near, "down");
  assert.equal(state!.pending, 41);
  await near.vault.kill();
  await near.vault.start();
  await near.s3.must("PUT", "/down/last", { body: "x" });
  await far.vault.start();
  await settle(near, "down");
  await requireSame(near, far, "down");
  const { headers } = await near.s3.must("HEAD", "/down/k1");
  assert.equal(headers["x-amz-replication-status"], "COMPLETED");
});

test("what a destination refuses is FAILED with its reason, holds up no later version, and is tried again", async () => {
  const { near, far } = stores;
  await makeBucket(near, "refused");
  await makeBucket(far, "refused");
  await replicate(near, "refused", "far");
  const { headers } = await near.s3.must("PUT", "/refused/k", {
    body: "secret",
    headers: {
      "x-amz-server-side-encryption-customer-algorithm": "AES256",
      "x-amz-server-side-encryption-customer-key": CUSTOMER_KEY.toString("base64"),
      "x-amz-server-side-encryption-customer-key-md5": createHash("md5")
        .update(CUSTOMER_KEY)
        .digest("base64"),
    },
  });
  await near.s3.must("PUT", "/refused/k", { body: "open" });
  await settle(near, "refused");
  const [state] = await readStates(near, "refused");
  assert.equal(state!.failed, 1);
  assert.match(state!.failures[0]!.reason, /SSE-C/);
  assert.equal(state!.failures[0]!.version_id, headers["x-amz-version-id"]);
  assert.equal((await far.s3.must("GET", "/refused/k")).text, "open");
  assert.match(
    (await near.admin.must("GET", "/metrics")).text,
    /platform_vault_tasks\{kind="replicate",state="dead"\} 1/,
  );

  await far.s3.must("PUT", "/refused?policy", {
    body: JSON.stringify({
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Deny",
          Principal: "*",
          Action: "s3:PutObject",
          Resource: "arn:aws:s3:::refused/no/*",
        },
      ],
    }),
  });
  await near.s3.must("PUT", "/refused/no/1", { body: "1" });
  await settle(near, "refused");
  assert.equal(
    (await near.s3.must("HEAD", "/refused/no/1")).headers["x-amz-replication-status"],
    "FAILED",
  );
  await far.s3.must("DELETE", "/refused?policy");
  await readJson(callJson(near, "POST", "/admin/tasks/dead/retry", { kind: "replicate" }));
  await settle(near, "refused");
  assert.equal((await far.s3.must("GET", "/refused/no/1")).text, "1");
});

test("a slow destination holds up neither its source nor another destination", async () => {
  const { near, far } = stores;
  await using slow = await LyingS3.start();
  slow.settings.set("versioning", VERSIONED);
  await addRemote(near, "slow", slow.endpoint);
  await makeBucket(near, "quick");
  await makeBucket(far, "quick");
  await makeBucket(near, "stuck");
  await replicate(near, "stuck", "slow");
  await replicate(near, "quick", "far");
  const open = Promise.withResolvers<undefined>();
  slow.judge = ({ method }) => (method === "PUT" ? open.promise : undefined);
  for (let n = 0; n < 80; n += 1) await near.s3.must("PUT", `/stuck/${n}`, { body: "x" });
  await near.s3.must("PUT", "/quick/a", { body: "y" });
  await settle(near, "quick");
  assert.equal((await far.s3.must("GET", "/quick/a")).text, "y");
  open.resolve(undefined);
  await settle(near, "stuck");
  assert.equal(slow.keys("stuck").length, 80);
});

test("a foreign store gets versions in their order, once, also if an answer is lost", async () => {
  const { near } = stores;
  await using other = await LyingS3.start();
  other.settings.set("versioning", VERSIONED);
  await addRemote(near, "other", other.endpoint);
  await makeBucket(near, "order");
  await replicate(near, "order", "other");
  let lost = 0;
  other.judge = ({ method }) => {
    if (method !== "PUT" || lost > 0) return undefined;
    lost += 1;
    return { kind: "drop" };
  };
  for (const body of ["1", "2", "3"]) await near.s3.must("PUT", "/order/k", { body });
  await near.s3.must("PUT", "/order/gone", { body: "x" });
  await near.s3.must("DELETE", "/order/gone");
  await settle(near, "order");
  const puts = other.requests.filter(({ method, key }) => method === "PUT" && key === "k");
  assert.deepEqual(
    puts.map(({ body }) => body.toString()),
    ["1", "2", "3"],
  );
  assert.equal(puts[0]!.headers["x-amz-meta-store-source"]?.includes("/"), true);
  assert.deepEqual(other.keys("order"), ["k"]);
});

test("delete markers, and versions from before a rule, follow by a resynchronization", async () => {
  const { near, far } = stores;
  await makeBucket(near, "again");
  await makeBucket(far, "again");
  await near.s3.must("PUT", "/again/before", { body: "1" });
  await near.s3.must("PUT", "/again/before", { body: "2" });
  await near.s3.must("PUT", "/again/gone", { body: "1" });
  await near.s3.must("DELETE", "/again/gone");
  await replicate(near, "again", "far");
  assert.deepEqual(await listVersions(far, "again"), []);
  const job = { operation: "replicate", bucket: "again", prefix: "", versions: "all" };
  const done = await runJob(job);
  assert.deepEqual([done.state, done.totals.done, done.totals.failed], ["completed", 4, 0]);
  await settle(near, "again");
  await requireSame(near, far, "again");
  // Lost versions come back, and those that are there are not sent twice.
  const lost = (await listVersions(far, "again")).map((row) => row.split(" ")[2]!);
  await far.s3.must("DELETE", `/again/before?versionId=${lost[0]}`);
  await runJob(job);
  await settle(near, "again");
  await requireSame(near, far, "again");
});

test("an existing-object rule sends what was there", async () => {
  const { near, far } = stores;
  await makeBucket(near, "exist");
  await makeBucket(far, "exist");
  await near.s3.must("PUT", "/exist/a", { body: "1" });
  await near.s3.must("DELETE", "/exist/a");
  await replicate(
    near,
    "exist",
    "far",
    "<ExistingObjectReplication><Status>Enabled</Status></ExistingObjectReplication>",
  );
  await waitFor(async () => (await listVersions(far, "exist")).length === 2, "the versions");
  await settle(near, "exist");
  await requireSame(near, far, "exist");
});

test("a bucket of the same store is a destination, with locks", async () => {
  const { near } = stores;
  await makeBucket(near, "source-l", true);
  await makeBucket(near, "target-l", true);
  await makeBucket(near, "unlocked");
  const refused = await near.s3.send("PUT", "/source-l?replication", {
    body: describeRule("arn:aws:s3:::unlocked"),
  });
  assert.match(refused.text, /object lock/);
  await near.s3.must("PUT", "/source-l?replication", {
    body: describeRule("arn:aws:s3:::target-l"),
  });
  const until = new Date(Date.now() + 86_400_000).toISOString();
  const { headers } = await near.s3.must("PUT", "/source-l/k", {
    body: makeBytes(200_000),
    headers: {
      "x-amz-object-lock-mode": "GOVERNANCE",
      "x-amz-object-lock-retain-until-date": until,
    },
  });
  await near.s3.must("PUT", "/source-l/k?legal-hold", {
    body: "<LegalHold><Status>ON</Status></LegalHold>",
  });
  await settle(near, "source-l");
  const version = String(headers["x-amz-version-id"]);
  const there = await near.s3.must("HEAD", `/target-l/k?versionId=${version}`);
  assert.equal(there.headers["x-amz-object-lock-mode"], "GOVERNANCE");
  assert.equal(there.headers["x-amz-object-lock-legal-hold"], "ON");
  assert.equal((await near.s3.send("DELETE", `/target-l/k?versionId=${version}`)).status, 403);
});

test("rules that cannot work are refused, and a bucket with waiting versions can be deleted", async () => {
  const { near, far } = stores;
  await makeBucket(near, "rules");
  await makeBucket(far, "rules");
  const put = async (arn: string, more = "") => {
    const { status, code, text } = await near.s3.send("PUT", "/rules?replication", {
      body: describeRule(arn, more),
    });
    assert.equal(status, 400, text);
    return `${code} ${text}`;
  };
  assert.match(await put("arn:aws:s3:::rules"), /itself/);
  assert.match(await put("arn:aws:s3:::nobody"), /must exist/);
  assert.match(await put("arn:aws:sqs:::rules"), /Invalid bucket ARN/);
  assert.match(await put("arn:objstore:replication::nobody:rules"), /there is no remote/);
  assert.match(await put("arn:objstore:replication::far:missing"), /cannot be used/);
  await far.s3.must("PUT", "/plain-bucket");
  assert.match(await put("arn:objstore:replication::far:plain-bucket"), /versioning enabled/);
  await addRemote(near, "myself", near.vault.url);
  assert.match(await put("arn:objstore:replication::myself:rules"), /cannot be used/);
  await near.s3.must("PUT", "/unversioned");
  const unversioned = await near.s3.send("PUT", "/unversioned?replication", {
    body: describeRule("arn:objstore:replication::far:rules"),
  });
  assert.match(unversioned.text, /Versioning must be/);
  // Users name remotes that are for their buckets.
  const key = await addReader(near, "rules", [
    "s3:PutReplicationConfiguration",
    "s3:GetReplicationConfiguration",
  ]);
  const body = describeRule("arn:objstore:replication::far:rules");
  assert.match(
    (await near.s3.send("PUT", "/rules?replication", { body, key })).text,
    /there is no remote/,
  );
  await readJson(callJson(near, "PATCH", "/admin/remotes/far", { allow: ["rul*"] }));
  await near.s3.must("PUT", "/rules?replication", { body, key });
  assert.match(
    (await near.s3.must("GET", "/rules?replication")).text,
    /arn:objstore:replication::far:rules/,
  );
  const suspend = "<VersioningConfiguration><Status>Suspended</Status></VersioningConfiguration>";
  assert.equal((await near.s3.send("PUT", "/rules?versioning", { body: suspend })).status, 409);
  assert.equal((await callJson(near, "DELETE", "/admin/remotes/far")).status, 409);

  await far.vault.kill();
  const { headers } = await near.s3.must("PUT", "/rules/k", { body: "x" });
  await near.s3.must("DELETE", `/rules/k?versionId=${String(headers["x-amz-version-id"])}`);
  await near.s3.must("DELETE", "/rules");
  await far.vault.start();
});

test("residency is asked when a rule is put, and when a version leaves", async () => {
  const { near, far } = stores;
  await makeBucket(near, "stays");
  await makeBucket(far, "stays");
  await readJson(callJson(near, "PATCH", "/admin/remotes/far", { region: "us-east-1" }));
  await near.s3.must("PUT", "/stays?geo-placement", {
    body: JSON.stringify({ region: "eu", allowed: ["eu-1"] }),
  });
  const body = describeRule("arn:objstore:replication::far:stays");
  const refused = await near.s3.send("PUT", "/stays?replication", { body });
  assert.deepEqual([refused.status, refused.code], [403, "AccessDenied"]);
  await near.s3.must("PUT", "/stays/marked", { body: "x" });
  await near.s3.must("DELETE", "/stays?geo-placement");
  await near.s3.must("PUT", "/stays?replication", { body });
  const tight = await near.s3.send("PUT", "/stays?geo-placement", {
    body: JSON.stringify({ region: "eu", allowed: ["eu-1"] }),
  });
  assert.equal(tight.status, 403);
  await near.s3.must("POST", "/stays/marked?replicate");
  await settle(near, "stays");
  assert.match((await readStates(near, "stays"))[0]!.failures[0]!.reason, /geo-placement/);
  await near.s3.must("PUT", "/stays?geo-placement", {
    body: JSON.stringify({ region: "eu", allowed: ["eu-1"], deny_replication_outside: false }),
  });
  await near.s3.must("PUT", "/stays/free", { body: "y" });
  await settle(near, "stays");
  assert.equal((await far.s3.must("GET", "/stays/free")).text, "y");
});
