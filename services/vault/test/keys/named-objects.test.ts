// Objects under named keys wherever objects go: a cold tier, questions, guests, jobs, another store, a backup.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { LyingS3 } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { back, restore } from "../backup/rig.ts";
import { identity, putModule } from "../guest/guests.ts";
import { listFailures, runJob } from "../job/rig.ts";
import { addRemote } from "../replication/stores.ts";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import type { Answer, Ask } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";

const SSE = "x-amz-server-side-encryption";
const KEY_ID = `${SSE}-aws-kms-key-id`;
const KEYS = "/admin/encryption-keys";
const DISABLED = [400, "KMS.DisabledException"] as const;
const CSV = "id,name\n1,Ann\n2,Bob\n";

let folder: string;
let env: Readonly<Record<string, string>>;
let near: Serving;
let far: Serving;
let remote: LyingS3;
let id: string;

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "vault-named-"));
  mkdirSync(join(folder, "backups"));
  env = { PLATFORM_VAULT_BACKUP_DIR: join(folder, "backups") };
  remote = await LyingS3.start();
  [near, far] = await Promise.all([serve({ env }), serve({ env })]);
  id = await makeKey(near, "one");
  await addRemote(near, "cold", remote.endpoint);
  await addRemote(near, "far", far.vault.url);
  await readJson(
    callJson(near, "POST", "/admin/federation", { prefix: "far-", remote: "far" }),
    201,
  );
  await putModule(near, "copy", identity);
});
after(async () => {
  await Promise.all([near[Symbol.asyncDispose](), far[Symbol.asyncDispose]()]);
  await remote[Symbol.asyncDispose]();
  rmSync(folder, { recursive: true, force: true });
});

async function makeKey(serving: Serving, name: string, more: object = {}): Promise<string> {
  const made = callJson(serving, "POST", KEYS, { name, ...more });
  return (await readJson<{ id: string }>(made, 201)).id;
}

const withKey = (name = "one") => ({ [SSE]: "aws:kms", [KEY_ID]: `alias/${name}` });
const putUnder = (path: string, body: string | Buffer, name = "one") =>
  near.s3.must("PUT", path, { body, headers: withKey(name) });
const change = (action: "disable" | "enable" | "rotate", name = "one") =>
  readJson(callJson(near, "POST", `${KEYS}/${name}/${action}`), action === "rotate" ? 202 : 200);
const readError = ({ status, code }: Answer) => [status, code];

/** Runs work while the key cannot be used. */
async function whileDisabled(work: () => Promise<void>, name = "one"): Promise<void> {
  await change("disable", name);
  try {
    await work();
  } finally {
    await change("enable", name);
  }
}

/** Waits until only the current version of the key is named by rows. */
async function untilWrapped(name = "one"): Promise<void> {
  await waitFor(async () => {
    const path = `${KEYS}/${name}`;
    const { versions } = await readJson<{ versions: { objects: number }[] }>(
      callJson(near, "GET", path),
    );
    return versions.slice(1).every(({ objects }) => objects === 0);
  }, "the rotation");
}

test("a key that is disabled while the bytes are remote: reads end, moves and restores continue, and a rotation reaches it", async () => {
  const { s3 } = near;
  await s3.must("PUT", "/cool");
  const tier = { days: 0, remote: "cold", bucket: "cold", minimum_size: 0 };
  await s3.must("PUT", "/cool?cold-tier", { body: JSON.stringify(tier) });
  const [small, large] = [makeBytes(100_000, 1), makeBytes(3_000_000, 2)];
  await putUnder("/cool/small", small);
  await putUnder("/cool/large", large);
  await whileDisabled(async () => {
    const swept = JSON.parse((await s3.must("POST", "/cool?cold-tier&sweep")).text) as object;
    assert.equal((swept as { moved: number }).moved, 2, "bytes move as they are");
    assert.deepEqual(readError(await s3.send("GET", "/cool/small")), DISABLED);
    const range = { headers: { range: "bytes=2000000-2000009" } };
    assert.deepEqual(readError(await s3.send("GET", "/cool/large", range)), DISABLED);
    const head = await s3.must("HEAD", "/cool/large");
    assert.equal(head.headers["x-amz-storage-class"], "COLD");
    assert.ok(String(head.headers[KEY_ID]).endsWith(id));
    const body = "<RestoreRequest><Days>1</Days></RestoreRequest>";
    assert.equal((await s3.send("POST", "/cool/large?restore", { body })).status, 202);
    const restored = async () =>
      /ongoing-request="false"/.test(
        String((await s3.must("HEAD", "/cool/large")).headers["x-amz-restore"]),
      );
    await waitFor(restored, "the local copy");
    assert.deepEqual(readError(await s3.send("GET", "/cool/large")), DISABLED);
    await change("rotate");
    await untilWrapped();
  });
  assert.ok((await s3.must("GET", "/cool/small")).body.equals(small), "through the remote");
  assert.ok((await s3.must("GET", "/cool/large")).body.equals(large), "from the local copy");
  for (const [key, { bytes }] of remote.objects)
    assert.ok(!bytes.includes(small.subarray(0, 64)), `${key} is encrypted`);
  await s3.must("PUT", "/cool/small", { headers: { "x-amz-copy-source": "/cool/small" } });
  assert.equal((await s3.must("HEAD", "/cool/small")).headers["x-amz-storage-class"], undefined);
  assert.ok((await s3.must("GET", "/cool/small")).body.equals(small));
});

const select = (path: string, more: Ask = {}) =>
  near.s3.send("POST", `${path}?select`, {
    ...more,
    body: JSON.stringify({
      Expression: "SELECT name FROM s3object WHERE id = '2'",
      ExpressionType: "SQL",
      InputSerialization: { CSV: { FileHeaderInfo: "USE" } },
      OutputSerialization: { JSON: {} },
    }),
  });

test("questions about content need the key and its use; those about metadata do not", async () => {
  const { s3 } = near;
  await s3.must("PUT", "/asked");
  const forbidden = {
    Statement: [{ Effect: "Deny", Principal: "*", Action: "kms:Decrypt", Resource: "*" }],
  };
  await makeKey(near, "guarded", { policy: forbidden });
  await putUnder("/asked/open.csv", CSV);
  await putUnder("/asked/guarded.csv", CSV, "guarded");
  const reader = await addReader(near, "asked", ["s3:GetObject", "s3:QueryBucketMetadata"]);
  assert.match((await select("/asked/open.csv", { key: reader })).text, /"name":"Bob"/);
  const refused = await select("/asked/guarded.csv", { key: reader });
  assert.equal(refused.status, 403, refused.text);
  assert.match(refused.text, /kms:Decrypt/);
  await whileDisabled(async () => {
    const answer = await select("/asked/open.csv");
    assert.deepEqual([answer.status, /KMS\.DisabledException/.test(answer.text)], [400, true]);
    const sql = encodeURIComponent("select key, size from objects order by key");
    const { text } = await s3.must("GET", `/asked?sql=${sql}`);
    const { rows } = JSON.parse(text) as { rows: unknown[] };
    assert.deepEqual(rows, [
      ["guarded.csv", CSV.length],
      ["open.csv", CSV.length],
    ]);
  });
});

test("guests and jobs read under a key, and write under the key of their target's bucket", async () => {
  const { s3 } = near;
  for (const bucket of ["made-from", "made-to", "made-jobs"]) await s3.must("PUT", `/${bucket}`);
  const other = await makeKey(near, "target");
  const setDefault = `<ServerSideEncryptionConfiguration><Rule><ApplyServerSideEncryptionByDefault><SSEAlgorithm>aws:kms</SSEAlgorithm><KMSMasterKeyID>alias/target</KMSMasterKeyID></ApplyServerSideEncryptionByDefault></Rule></ServerSideEncryptionConfiguration>`;
  for (const bucket of ["made-to", "made-jobs"])
    await s3.must("PUT", `/${bucket}?encryption`, { body: setDefault });
  const trigger = {
    id: "t",
    events: ["objstore:ObjectCreated:*"],
    module: "copy",
    target: { bucket: "made-to", key: "by-trigger/{name}" },
    enabled: true,
  };
  await s3.must("PUT", "/made-from?triggers", { body: JSON.stringify({ triggers: [trigger] }) });
  await putUnder("/made-from/a", CSV);
  const requireMade = async (path: string): Promise<void> => {
    const answer = await waitFor(async () => {
      const got = await s3.send("GET", path);
      return got.status === 200 ? got : undefined;
    }, path);
    assert.equal(answer.text, CSV);
    assert.ok(String(answer.headers[KEY_ID]).endsWith(other), path);
  };
  await requireMade("/made-to/by-trigger/a");
  const transform = (query = "") => s3.send("POST", `/made-from/a?transform&module=copy${query}`);
  assert.equal((await transform()).text, CSV);
  assert.equal((await transform("&target-bucket=made-to&target-key=by-request")).status, 200);
  await requireMade("/made-to/by-request");
  const copy = { operation: "copy", bucket: "made-from", prefix: "", target_bucket: "made-jobs" };
  const pipeline = { ...copy, operation: "pipeline", modules: ["copy"] };
  assert.equal((await runJob(near, { ...copy, target_prefix: "copied/" })).totals.done, 1);
  await requireMade("/made-jobs/copied/a");
  assert.equal((await runJob(near, { ...pipeline, target_prefix: "piped/" })).totals.done, 1);
  await requireMade("/made-jobs/piped/a");
  await whileDisabled(async () => {
    const refused = await transform();
    assert.deepEqual([refused.status, refused.text.includes(DISABLED[1])], [400, true]);
    for (const spec of [copy, pipeline]) {
      const job = await runJob(near, { ...spec, target_prefix: "never/" });
      assert.deepEqual([job.totals.done, job.totals.failed], [0, 1]);
      const [failure] = await listFailures(near, job.job_id);
      assert.equal(failure?.code, "KMS.DisabledException");
    }
  });
  assert.equal((await s3.send("GET", "/made-jobs/never/a")).status, 404);
});

test("a federated bucket has the keys of its store, and a copy to it needs the use of the key here", async () => {
  const { s3 } = near;
  const there = await makeKey(far, "there");
  await s3.must("PUT", "/far-named");
  await s3.must("PUT", "/here-named");
  const put = await s3.must("PUT", "/far-named/k", { body: CSV, headers: withKey("there") });
  assert.ok(String(put.headers[KEY_ID]).endsWith(there));
  const got = await s3.must("GET", "/far-named/k");
  assert.deepEqual([got.text, got.headers[SSE]], [CSV, "aws:kms"]);
  const unknown = await s3.send("PUT", "/far-named/x", { body: CSV, headers: withKey("one") });
  assert.deepEqual(readError(unknown), [400, "KMS.NotFoundException"]);
  await putUnder("/here-named/k", CSV);
  const copyTo = (key: string, more: object = {}) =>
    s3.send("PUT", `/far-named/${key}`, {
      headers: { "x-amz-copy-source": "/here-named/k", ...more },
    });
  assert.equal((await copyTo("plain")).status, 200);
  assert.equal((await copyTo("sealed", withKey("there"))).status, 200);
  assert.equal((await s3.must("GET", "/far-named/plain")).text, CSV);
  const sealed = await far.s3.must("GET", "/far-named/sealed");
  assert.ok(String(sealed.headers[KEY_ID]).endsWith(there));
  await whileDisabled(async () => {
    assert.deepEqual(readError(await copyTo("never")), DISABLED);
  });
  assert.equal((await far.s3.send("HEAD", "/far-named/never")).status, 404);
  const disabled = callJson(far, "POST", `${KEYS}/there/disable`);
  await readJson(disabled);
  assert.deepEqual(readError(await s3.send("GET", "/far-named/k")), DISABLED);
  await readJson(callJson(far, "POST", `${KEYS}/there/enable`));
});

test("a backup is restored into a store without the key, which has it then; a disabled key stays disabled", async () => {
  const { s3 } = near;
  const saved = await makeKey(near, "saved");
  const shut = await makeKey(near, "shut");
  await s3.must("PUT", "/kept");
  for (const name of ["saved", "shut"]) await putUnder(`/kept/${name}`, CSV, name);
  await change("rotate", "saved");
  await whileDisabled(async () => {
    await back(near);
  }, "shut");
  assert.equal((await callJson(far, "GET", `${KEYS}/saved`)).status, 404);
  const job = await restore(far, { buckets: ["kept"] });
  assert.equal(job.state, "completed", JSON.stringify(job));
  const answer = await far.s3.must("GET", "/kept/saved");
  assert.equal(answer.text, CSV);
  assert.ok(String(answer.headers[KEY_ID]).endsWith(saved));
  const shown = await readJson<{ state: string }>(callJson(far, "GET", `${KEYS}/${shut}`));
  assert.equal(shown.state, "disabled");
  assert.deepEqual(readError(await far.s3.send("GET", "/kept/shut")), DISABLED);
  await readJson(callJson(far, "POST", `${KEYS}/shut/enable`));
  assert.equal((await far.s3.must("GET", "/kept/shut")).text, CSV);
  await far.s3.must("PUT", "/kept/new", { body: "new", headers: withKey("saved") });
});
