// Backup repositories in a bucket of another store: by jobs of a running one, and by the commands of a stopped one.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { addRemote, makeBucket } from "../replication/stores.ts";
import { callJson, readJson } from "../serving/json-api.ts";
import { S3TestClient } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeBytes, makeFolder } from "../store/fixture.ts";

const PROGRAM = fileURLToPath(new URL("../../../../bin/platform-vaultd.js", import.meta.url));
const REPOSITORY = { remote: "far", bucket: "backups", prefix: "near" };
const QUERY = "remote=far&bucket=backups&prefix=near";

interface Job {
  state: string;
  reason: string | null;
}

let near: Serving;
let far: Serving;

before(async () => {
  [near, far] = await Promise.all([serve(), serve()]);
  await far.s3.must("PUT", "/backups");
  await addRemote(near, "far", far.vault.url, { region: "us-east-1" });
  await makeBucket(near, "photos");
});
after(() => Promise.all([near[Symbol.asyncDispose](), far[Symbol.asyncDispose]()]));

async function run(path: string, body: object): Promise<Job> {
  const { job_id } = await readJson<{ job_id: string }>(callJson(near, "POST", path, body), 202);
  const read = () => readJson<Job>(callJson(near, "GET", `/admin/batch/${job_id}`));
  await waitFor(
    async () => ["completed", "failed"].includes((await read()).state),
    "the job",
    60_000,
  );
  return read();
}

async function listSnapshots(): Promise<{ id: string; added_bytes: number }[]> {
  const answer = await readJson<{ items: { id: string; added_bytes: number }[] }>(
    callJson(near, "GET", `/admin/backup/snapshots?${QUERY}`),
  );
  return answer.items;
}

test("a running store backs up into a remote, stores only what is new there, and restores from it", async () => {
  await near.s3.must("PUT", "/photos/a", { body: makeBytes(5_000_000, 1) });
  await near.s3.must("PUT", "/photos/b", { body: "small" });
  assert.equal((await run("/admin/backup", { repository: REPOSITORY })).state, "completed");
  await near.s3.must("PUT", "/photos/b", { body: "changed" });
  assert.equal(
    (await run("/admin/backup", { repository: REPOSITORY, keep: { last: 5 } })).state,
    "completed",
  );
  const [first, second] = await listSnapshots();
  assert.ok(second!.added_bytes < first!.added_bytes / 4, JSON.stringify([first, second]));
  const done = await run("/admin/backup/restore", {
    repository: REPOSITORY,
    snapshot: first!.id,
    buckets: ["photos"],
    as: { photos: "restored" },
  });
  assert.deepEqual([done.state, done.reason], ["completed", null]);
  assert.ok((await near.s3.must("GET", "/restored/a")).body.equals(makeBytes(5_000_000, 1)));
  assert.equal((await near.s3.must("GET", "/restored/b")).text, "small");
  const { text } = await far.s3.must("GET", "/backups?list-type=2&prefix=near/lock");
  assert.ok(!text.includes("<Key>"), "the lock has gone");
});

test("the commands of a stopped store read and write the same repository", async (context) => {
  const folder = makeFolder(context);
  const env = {
    ...process.env,
    PLATFORM_VAULT_DATA_DIR: join(folder, "data"),
    PLATFORM_VAULT_REPOSITORY_ENDPOINT: far.vault.url,
    PLATFORM_VAULT_REPOSITORY_ACCESS_KEY: vaultRoot.accessKey,
    PLATFORM_VAULT_REPOSITORY_SECRET_KEY: vaultRoot.secretKey,
  };
  const tool = (...words: string[]) =>
    promisify(execFile)(process.execPath, [PROGRAM, ...words], { env });
  await tool("restore", "s3://backups/near");
  const { stdout } = await tool("backup", "s3://backups/near");
  assert.match(stdout, /snapshot [0-9a-f-]+/);
  assert.match(
    (await tool("repository", "check", "s3://backups/near")).stdout,
    /everything is intact/,
  );
  await assert.rejects(tool("restore", "s3://"), /expected s3:/);
  await using other = await StagedVault.start({ folder });
  const client = new S3TestClient(other.port, vaultRoot);
  assert.equal((await client.must("GET", "/photos/b")).text, "changed");
  client.close();
});

test("a remote that is not registered, or not allowed, is refused", async () => {
  const unknown = { ...REPOSITORY, remote: "nobody" };
  assert.equal(
    (await callJson(near, "POST", "/admin/backup", { repository: unknown })).status,
    400,
  );
  const missing = { ...REPOSITORY, bucket: "missing" };
  const answer = await callJson(near, "POST", "/admin/backup", { repository: missing });
  assert.equal(answer.status, 409);
  await near.s3.must("PUT", "/photos?geo-placement", {
    body: JSON.stringify({ region: "eu", allowed: ["eu-1"] }),
  });
  const refused = await callJson(near, "POST", "/admin/backup", { repository: REPOSITORY });
  assert.equal(refused.status, 403);
  assert.match(refused.text, /photos.*geo-placement/);
  await near.s3.must("PUT", "/photos/marked", { body: "x" });
  await near.s3.must("DELETE", "/photos?geo-placement");
  const marked = await callJson(near, "POST", "/admin/backup", { repository: REPOSITORY });
  assert.deepEqual([marked.status, /written under/.test(marked.text)], [403, true]);
  await near.s3.must(
    "DELETE",
    `/photos/marked?versionId=${String((await near.s3.must("HEAD", "/photos/marked")).headers["x-amz-version-id"])}`,
  );
  assert.equal((await run("/admin/backup", { repository: REPOSITORY })).state, "completed");
});
