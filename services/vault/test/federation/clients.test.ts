// Replication and federated buckets as boto3 and the SDK of AWS see them.
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import {
  CopyObjectCommand,
  CreateBucketCommand,
  DeleteObjectsCommand,
  GetBucketReplicationCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListObjectsV2Command,
  PutBucketReplicationCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  type ReplicationConfiguration,
  S3Client,
} from "@aws-sdk/client-s3";
import { vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { makeBucket, startTwoStores, type TwoStores } from "../replication/stores.ts";
import { callJson, readJson } from "../serving/json-api.ts";
import type { Serving } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";

const run = promisify(execFile);
const PYTHON = "/usr/bin/python3";
const SCRIPT = fileURLToPath(new URL("boto3-exercise.py", import.meta.url));
const isThere = spawnSync(PYTHON, [SCRIPT, "version"]).status === 0;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = !isThere && !isRequired && "python3-boto3 is not installed";

let stores: TwoStores;
before(async () => {
  stores = await startTwoStores();
  const rule = { prefix: "far-", remote: "far" };
  await readJson(callJson(stores.near, "POST", "/admin/federation", rule), 201);
});
after(() => stores[Symbol.asyncDispose]());

async function exercise(command: string, bucket: string): Promise<void> {
  const env = {
    PATH: "/usr/bin:/bin",
    AWS_ACCESS_KEY_ID: vaultRoot.accessKey,
    AWS_SECRET_ACCESS_KEY: vaultRoot.secretKey,
    AWS_DEFAULT_REGION: "us-east-1",
    AWS_EC2_METADATA_DISABLED: "true",
  };
  const { near, far } = stores;
  await run(PYTHON, [SCRIPT, command, near.vault.url, bucket, far.vault.url], { env });
}

function connect({ vault }: Serving): S3Client {
  const credentials = {
    accessKeyId: vaultRoot.accessKey,
    secretAccessKey: vaultRoot.secretKey,
  };
  const place = { endpoint: vault.url, region: "us-east-1", forcePathStyle: true };
  return new S3Client({ ...place, maxAttempts: 1, credentials });
}

test(
  "boto3: a rule with all of its members, objects in parts, and later tags",
  { skip },
  async () => {
    for (const store of [stores.near, stores.far]) await makeBucket(store, "by-python");
    await exercise("replication", "by-python");
  },
);

test(
  "boto3: a federated bucket is made, paged, filled in parts, copied, presigned and removed",
  { skip },
  async () => {
    await exercise("federation", "far-python");
  },
);

test("the SDK of AWS: a rule, its statuses, and a federated bucket", async () => {
  const [near, far] = [connect(stores.near), connect(stores.far)];
  for (const client of [near, far]) {
    await client.send(new CreateBucketCommand({ Bucket: "by-sdk" }));
    const VersioningConfiguration = { Status: "Enabled" } as const;
    await client.send(
      new PutBucketVersioningCommand({ Bucket: "by-sdk", VersioningConfiguration }),
    );
  }
  const replication: ReplicationConfiguration = {
    Role: "",
    Rules: [
      {
        ID: "one",
        Priority: 1,
        Status: "Enabled",
        Filter: { Prefix: "" },
        DeleteMarkerReplication: { Status: "Enabled" },
        Destination: { Bucket: "arn:objstore:replication::far:by-sdk" },
      },
    ],
  };
  const setting = { Bucket: "by-sdk", ReplicationConfiguration: replication };
  await near.send(new PutBucketReplicationCommand(setting));
  const got = await near.send(new GetBucketReplicationCommand({ Bucket: "by-sdk" }));
  assert.deepEqual(got.ReplicationConfiguration?.Rules, replication.Rules);
  const address = { Bucket: "by-sdk", Key: "k" };
  await near.send(new PutObjectCommand({ ...address, Body: "text", ChecksumAlgorithm: "SHA256" }));
  const readStatus = async (client: S3Client) =>
    (await client.send(new HeadObjectCommand(address))).ReplicationStatus;
  await waitFor(async () => (await readStatus(near)) === "COMPLETED", "the replica");
  assert.equal(await readStatus(far), "REPLICA");

  const Bucket = "far-sdk";
  const body = makeBytes(300_000, 8);
  await near.send(new CreateBucketCommand({ Bucket }));
  await near.send(new PutObjectCommand({ Bucket, Key: "a b/ü", Body: body }));
  await near.send(
    new CopyObjectCommand({ Bucket, Key: "copy", CopySource: `${Bucket}/a%20b/%C3%BC` }),
  );
  const read = await near.send(new GetObjectCommand({ Bucket, Key: "copy", Range: "bytes=5-9" }));
  assert.deepEqual(Buffer.from(await read.Body!.transformToByteArray()), body.subarray(5, 10));
  const { Contents } = await far.send(new ListObjectsV2Command({ Bucket }));
  assert.deepEqual(
    Contents?.map(({ Key }) => Key),
    ["a b/ü", "copy"],
  );
  const Objects = [{ Key: "copy" }, { Key: "a b/ü" }];
  const deleted = await near.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
  assert.equal(deleted.Deleted?.length, 2);
  for (const client of [near, far]) client.destroy();
});
