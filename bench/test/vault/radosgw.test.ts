// Ceph's object gateway as the place of cold objects and of a second copy: tier, replication, federation and a backup repository,
// with the SDK of AWS as the client. A long form: PLATFORM_RADOSGW=1, with the packages of `tools/install-peers bench`.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import {
  CreateBucketCommand,
  CreateMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CopyObjectCommand,
  DeleteObjectCommand,
  GetBucketReplicationCommand,
  GetObjectCommand,
  GetObjectTaggingCommand,
  HeadObjectCommand,
  ListBucketsCommand,
  ListObjectsV2Command,
  PutBucketReplicationCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  PutObjectTaggingCommand,
  RestoreObjectCommand,
  S3Client,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { createUrlSigner } from "@platform/s3/signature";
import { StagedVault, vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { findFreePort } from "../../../tests/stage/process.ts";
import { Workspace } from "../../harness/case.ts";
import { CREDENTIALS } from "../../vault/presign.ts";
import { radosgw } from "../../vault/stores/radosgw.ts";

const region = "us-east-1";
const skip = process.env["PLATFORM_RADOSGW"] === "1" ? false : "PLATFORM_RADOSGW is not set";
const BIG = randomBytes(3_000_000);

interface Status {
  sweep: { state: string; moved: number; failed: number };
}

let workspace: Workspace;
let vault: StagedVault;
let near: S3Client;
let far: S3Client;

function createClient(endpoint: string, accessKeyId: string, secretAccessKey: string): S3Client {
  const credentials = { accessKeyId, secretAccessKey };
  // It does not know the checksums that newer SDKs add.
  const older = { requestChecksumCalculation: "WHEN_REQUIRED" } as const;
  return new S3Client({ endpoint, region, credentials, forcePathStyle: true, ...older });
}

async function askAdmin(method: string, path: string, body: object | undefined): Promise<unknown> {
  const url = new URL(path, vault.adminUrl);
  const text = body === undefined ? "" : JSON.stringify(body);
  const { accessKey, secretKey: secret } = vaultRoot;
  const headers = createUrlSigner({ accessKey, secret, region })(method, url, text);
  const type = { "content-type": "application/json" };
  const sent = body === undefined ? {} : { body: text };
  const answer = await fetch(url, { method, headers: { ...type, ...headers }, ...sent });
  const received = await answer.text();
  assert.ok(answer.ok, received);
  return received === "" ? undefined : JSON.parse(received);
}

/** Puts the object `parts`; returns its ETag. */
async function putParts(Bucket: string, bodies: readonly Buffer[]): Promise<string | undefined> {
  const target = { Bucket, Key: "parts" };
  const { UploadId } = await near.send(new CreateMultipartUploadCommand(target));
  const Parts: { PartNumber: number; ETag: string | undefined }[] = [];
  for (const [index, Body] of bodies.entries()) {
    const part = { ...target, UploadId, PartNumber: index + 1, Body };
    const { ETag } = await near.send(new UploadPartCommand(part));
    Parts.push({ PartNumber: index + 1, ETag });
  }
  const whole = { ...target, UploadId, MultipartUpload: { Parts } };
  return (await near.send(new CompleteMultipartUploadCommand(whole))).ETag;
}

before(async () => {
  if (skip !== false) return;
  workspace = new Workspace();
  const port = await findFreePort();
  await radosgw.start({ port, cores: "0-1", folder: workspace.folder, workspace });
  vault = await StagedVault.start({ folder: `${workspace.folder}/vault` });
  const { accessKey: access_key, secretKey: secret_key } = CREDENTIALS;
  const endpoint = `http://127.0.0.1:${port}`;
  near = createClient(vault.url, vaultRoot.accessKey, vaultRoot.secretKey);
  far = createClient(endpoint, access_key, secret_key);
  await askAdmin("POST", "/admin/remotes", { name: "ceph", endpoint, access_key, secret_key });
});
after(async () => {
  if (skip !== false) return;
  near.destroy();
  far.destroy();
  await vault[Symbol.asyncDispose]();
  await workspace[Symbol.asyncDispose]();
});

test("versions, parts, markers and tags are replicated to it", { skip }, async () => {
  const Bucket = "letters";
  for (const client of [near, far]) {
    await client.send(new CreateBucketCommand({ Bucket }));
    const VersioningConfiguration = { Status: "Enabled" } as const;
    await client.send(new PutBucketVersioningCommand({ Bucket, VersioningConfiguration }));
  }
  const Destination = { Bucket: `arn:objstore:replication::ceph:${Bucket}` };
  const rule = { ID: "all", Priority: 1, Status: "Enabled", Filter: { Prefix: "" } } as const;
  const markers = { DeleteMarkerReplication: { Status: "Enabled" } } as const;
  const Rules = [{ ...rule, ...markers, Destination }];
  const ReplicationConfiguration = { Role: "", Rules };
  await near.send(new PutBucketReplicationCommand({ Bucket, ReplicationConfiguration }));
  const kept = await near.send(new GetBucketReplicationCommand({ Bucket }));
  assert.deepEqual(kept.ReplicationConfiguration?.Rules, Rules);

  const Metadata = { maker: "me" };
  await near.send(new PutObjectCommand({ Bucket, Key: "big", Body: BIG, Metadata }));
  await near.send(new PutObjectCommand({ Bucket, Key: "gone", Body: "x" }));
  await near.send(new DeleteObjectCommand({ Bucket, Key: "gone" }));
  const ETag = await putParts(Bucket, [randomBytes(5_300_000), Buffer.from("end")]);
  const readStatus = async (Key: string) =>
    (await near.send(new HeadObjectCommand({ Bucket, Key }))).ReplicationStatus;
  for (const key of ["big", "parts"])
    await waitFor(async () => (await readStatus(key)) === "COMPLETED", key, 60_000);
  const there = await far.send(new GetObjectCommand({ Bucket, Key: "big" }));
  assert.ok(BIG.equals(await there.Body!.transformToByteArray()));
  assert.equal(there.Metadata?.["maker"], "me");
  assert.equal((await far.send(new HeadObjectCommand({ Bucket, Key: "parts" }))).ETag, ETag);
  await assert.rejects(far.send(new HeadObjectCommand({ Bucket, Key: "gone" })));

  const TagSet = [{ Key: "of", Value: "later" }];
  await near.send(new PutObjectTaggingCommand({ Bucket, Key: "big", Tagging: { TagSet } }));
  await waitFor(async () => {
    const tags = await far.send(new GetObjectTaggingCommand({ Bucket, Key: "big" }));
    return tags.TagSet?.[0]?.Value === "later";
  }, "the tags");
});

test("its buckets are federated", { skip }, async () => {
  await askAdmin("POST", "/admin/federation", { prefix: "far-", remote: "ceph" });
  const Bucket = "far-attic";
  await near.send(new CreateBucketCommand({ Bucket }));
  await near.send(new PutObjectCommand({ Bucket, Key: "big", Body: BIG }));
  const { Body } = await near.send(
    new GetObjectCommand({ Bucket, Key: "big", Range: "bytes=9-19" }),
  );
  assert.ok(BIG.subarray(9, 20).equals(await Body!.transformToByteArray()));
  const CopySource = "letters/big";
  await near.send(new CopyObjectCommand({ Bucket, Key: "copy", CopySource }));
  assert.ok(
    (await far.send(new HeadObjectCommand({ Bucket, Key: "copy" }))).ContentLength === BIG.length,
  );
  const { Buckets = [] } = await near.send(new ListBucketsCommand({}));
  assert.ok(Buckets.some(({ Name }) => Name === Bucket));
});

test("objects move to it, are read, restored and deleted there", { skip }, async () => {
  const Bucket = "films";
  for (const client of [near, far]) {
    const there = client === far ? "cold-films" : Bucket;
    await client.send(new CreateBucketCommand({ Bucket: there }));
  }
  const path = `/api/v1/buckets/${Bucket}/config/cold-tier`;
  await askAdmin("PUT", path, { days: 0, remote: "ceph", bucket: "cold-films" });
  const parts = [randomBytes(5_300_000), randomBytes(300_000)];
  await putParts(Bucket, parts);
  for (const [Key, ServerSideEncryption] of [
    ["plain", undefined],
    ["sealed", "AES256"],
  ] as const)
    await near.send(new PutObjectCommand({ Bucket, Key, Body: BIG, ServerSideEncryption }));
  await askAdmin("POST", `${path}/sweep`, undefined);
  const sweep = await waitFor(async () => {
    const status = (await askAdmin("GET", `${path}/status`, undefined)) as Status;
    return status.sweep.state === "running" ? undefined : status.sweep;
  }, "the sweep");
  assert.deepEqual([sweep.state, sweep.moved, sweep.failed], ["done", 3, 0]);
  const listThere = async (): Promise<number> => {
    const { Contents = [] } = await far.send(new ListObjectsV2Command({ Bucket: "cold-films" }));
    return Contents.filter(({ Key = "" }) => !Key.endsWith("store.json")).length;
  };
  assert.equal(await listThere(), 4, "each part of an object is one");
  const get = async (Key: string, Range?: string): Promise<Buffer> => {
    const { Body } = await near.send(new GetObjectCommand({ Bucket, Key, Range }));
    return Buffer.from(await Body!.transformToByteArray());
  };
  for (const key of ["plain", "sealed"]) {
    const { StorageClass } = await near.send(new HeadObjectCommand({ Bucket, Key: key }));
    assert.equal(StorageClass, "COLD");
    assert.ok(BIG.equals(await get(key)), key);
    assert.ok(BIG.subarray(70_000, 70_100).equals(await get(key, "bytes=70000-70099")), key);
  }
  assert.ok(Buffer.concat(parts).equals(await get("parts")));
  await near.send(new RestoreObjectCommand({ Bucket, Key: "plain", RestoreRequest: { Days: 1 } }));
  await waitFor(async () => {
    const { Restore } = await near.send(new HeadObjectCommand({ Bucket, Key: "plain" }));
    return Restore?.startsWith('ongoing-request="false"');
  }, "the copy");
  const itself = { Bucket, Key: "sealed", CopySource: `${Bucket}/sealed` };
  await near.send(new CopyObjectCommand({ ...itself, StorageClass: "STANDARD" }));
  await near.send(new DeleteObjectCommand({ Bucket, Key: "parts" }));
  await waitFor(async () => (await listThere()) === 1, "the deletions there", 60_000);
  assert.ok(BIG.equals(await get("plain")));
  assert.ok(BIG.equals(await get("sealed")));
});

test("it holds a backup repository", { skip }, async () => {
  await far.send(new CreateBucketCommand({ Bucket: "backups" }));
  const repository = { remote: "ceph", bucket: "backups", prefix: "nightly" };
  const run = async (path: string, body: object): Promise<void> => {
    const { job_id } = (await askAdmin("POST", path, body)) as { job_id: string };
    const read = async (): Promise<string> =>
      ((await askAdmin("GET", `/admin/batch/${job_id}`, undefined)) as { state: string }).state;
    await waitFor(async () => ["completed", "failed"].includes(await read()), path, 120_000);
    assert.equal(await read(), "completed");
  };
  await run("/admin/backup", { repository });
  await near.send(new PutObjectCommand({ Bucket: "letters", Key: "changed", Body: "new" }));
  await run("/admin/backup", { repository });
  await run("/admin/backup/restore", {
    repository,
    buckets: ["letters"],
    as: { letters: "again" },
  });
  const { Body } = await near.send(new GetObjectCommand({ Bucket: "again", Key: "changed" }));
  assert.equal(await Body!.transformToString(), "new");
});
