// The AWS SDK for JavaScript with defaults: checksums, retries, path-style addressing.
import assert from "node:assert/strict";
import { createReadStream, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import {
  CreateMultipartUploadCommand,
  AbortMultipartUploadCommand,
  DeleteObjectsCommand,
  GetObjectAttributesCommand,
  GetObjectCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutBucketVersioningCommand,
  PutObjectCommand,
  S3Client,
  SelectObjectContentCommand,
  S3ServiceException,
  paginateListObjectsV2,
} from "@aws-sdk/client-s3";
import { Upload } from "@aws-sdk/lib-storage";
import { vaultRoot } from "@platform/testing/staged-vault";
import type { RealS3Client, S3Scene } from "./client.ts";

const require = createRequire(import.meta.url);
const PART_BYTES = 5 * 1024 * 1024;

function readPackageVersion(name: string): string {
  return (require(`${name}/package.json`) as { version: string }).version;
}

async function putAndGet(client: S3Client, Bucket: string): Promise<void> {
  const put = await client.send(
    new PutObjectCommand({ Bucket, Key: "a/ä b", Body: "hello", Metadata: { color: "red" } }),
  );
  assert.ok(put.ChecksumCRC32, "the SDK's default checksum comes back");
  // The SDK requests the checksum and verifies the body.
  const got = await client.send(new GetObjectCommand({ Bucket, Key: "a/ä b" }));
  assert.equal(got.ChecksumCRC32, put.ChecksumCRC32);
  assert.equal(await got.Body!.transformToString(), "hello");
  assert.deepEqual(got.Metadata, { color: "red" });
  for (const algorithm of ["CRC32C", "CRC64NVME", "SHA1", "SHA256"] as const) {
    const Key = `checked ${algorithm}`;
    await client.send(
      new PutObjectCommand({ Bucket, Key, Body: "hello", ChecksumAlgorithm: algorithm }),
    );
    const head = await client.send(new HeadObjectCommand({ Bucket, Key, ChecksumMode: "ENABLED" }));
    assert.ok(head[`Checksum${algorithm}`], algorithm);
  }
  await assert.rejects(
    client.send(new PutObjectCommand({ Bucket, Key: "a/ä b", Body: "x", IfNoneMatch: "*" })),
    (error) => error instanceof S3ServiceException && error.name === "PreconditionFailed",
  );
}

async function uploadStream(client: S3Client, { bucket, tree }: S3Scene): Promise<void> {
  const path = join(tree, "large.bin");
  const upload = new Upload({
    client,
    params: { Bucket: bucket, Key: "stream", Body: createReadStream(path) },
    partSize: PART_BYTES,
    queueSize: 3,
  });
  const done = await upload.done();
  assert.ok(done.ChecksumCRC32, "the parts' checksums make up one of the whole");
  const got = await client.send(new GetObjectCommand({ Bucket: bucket, Key: "stream" }));
  assert.ok(Buffer.from(await got.Body!.transformToByteArray()).equals(readFileSync(path)));
  const attributes = await client.send(
    new GetObjectAttributesCommand({
      Bucket: bucket,
      Key: "stream",
      ObjectAttributes: ["Checksum", "ObjectParts", "ETag"],
    }),
  );
  assert.equal(attributes.ObjectParts?.TotalPartsCount, 3);
  assert.ok(attributes.Checksum?.ChecksumCRC32);
}

async function leaveAndAbort(client: S3Client, Bucket: string): Promise<void> {
  const { UploadId } = await client.send(
    new CreateMultipartUploadCommand({ Bucket, Key: "left over" }),
  );
  const listed = await client.send(new ListMultipartUploadsCommand({ Bucket }));
  assert.deepEqual(
    listed.Uploads?.map((upload) => upload.Key),
    ["left over"],
  );
  await client.send(new AbortMultipartUploadCommand({ Bucket, Key: "left over", UploadId }));
}

async function listAndDelete(client: S3Client, Bucket: string): Promise<void> {
  const keys: string[] = [];
  for await (const page of paginateListObjectsV2({ client, pageSize: 2 }, { Bucket }))
    for (const { Key } of page.Contents ?? []) keys.push(Key!);
  assert.equal(keys.length, 6);
  const Objects = keys.map((Key) => ({ Key }));
  const deleted = await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects } }));
  assert.equal(deleted.Deleted?.length, keys.length);
  assert.equal(deleted.Errors, undefined);
}

async function encrypt(client: S3Client, Bucket: string): Promise<void> {
  const kms = { ServerSideEncryption: "aws:kms" } as const;
  const first = await client.send(
    new PutObjectCommand({ Bucket, Key: "sealed", Body: "hello", ...kms }),
  );
  const arn = first.SSEKMSKeyId!;
  for (const SSEKMSKeyId of [arn, arn.split("/")[1], "alias/aws/s3"]) {
    const put = await client.send(
      new PutObjectCommand({ Bucket, Key: "sealed", Body: "hello", SSEKMSKeyId, ...kms }),
    );
    assert.equal(put.SSEKMSKeyId, arn);
  }
  const got = await client.send(new GetObjectCommand({ Bucket, Key: "sealed" }));
  assert.equal(await got.Body!.transformToString(), "hello");
  assert.equal(got.SSEKMSKeyId, arn);
  const missing = { SSEKMSKeyId: "alias/none", ...kms };
  await assert.rejects(
    client.send(new PutObjectCommand({ Bucket, Key: "x", Body: "x", ...missing })),
    (error) => error instanceof S3ServiceException && error.name === "KMS.NotFoundException",
  );
  await client.send(new DeleteObjectsCommand({ Bucket, Delete: { Objects: [{ Key: "sealed" }] } }));
}

async function selectRecords(client: S3Client, Bucket: string): Promise<void> {
  const rows = Array.from({ length: 50_000 }, (_, id) => `{"id":${id},"tag":"${id % 3}"}\n`);
  await client.send(new PutObjectCommand({ Bucket, Key: "rows", Body: rows.join("") }));
  const { Payload } = await client.send(
    new SelectObjectContentCommand({
      Bucket,
      Key: "rows",
      ExpressionType: "SQL",
      Expression: "SELECT s.id FROM S3Object s WHERE s.tag = '1'",
      InputSerialization: { JSON: { Type: "LINES" } },
      OutputSerialization: { CSV: {} },
      RequestProgress: { Enabled: true },
    }),
  );
  let text = "";
  let scanned: number | undefined;
  for await (const { Records, Stats } of Payload!) {
    text += Buffer.from(Records?.Payload ?? []).toString();
    scanned = Stats?.Details?.BytesScanned ?? scanned;
  }
  const wanted = Array.from({ length: 50_000 }, (_, id) => id).filter((id) => id % 3 === 1);
  assert.equal(text, `${wanted.join("\n")}\n`);
  assert.equal(scanned, rows.join("").length);
}

/** The AWS SDK for JavaScript, version 3. */
export const sdk: RealS3Client = {
  name: "AWS SDK for JavaScript",
  package: { registry: "npm", name: "@aws-sdk/client-s3" },
  readVersion: () =>
    `client-s3 ${readPackageVersion("@aws-sdk/client-s3")}, lib-storage ${readPackageVersion("@aws-sdk/lib-storage")}`,
  shows:
    "default and explicitly chosen checksums in trailers, multipart upload of a stream of unknown length, conditional requests, SSE-KMS, GetObjectAttributes, SelectObjectContent, paginated listings, batch deletion",
  async exercise(scene) {
    const client = new S3Client({
      endpoint: scene.vault.url,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId: vaultRoot.accessKey, secretAccessKey: vaultRoot.secretKey },
    });
    try {
      await putAndGet(client, scene.bucket);
      await uploadStream(client, scene);
      await leaveAndAbort(client, scene.bucket);
      await listAndDelete(client, scene.bucket);
      await encrypt(client, scene.bucket);
      await selectRecords(client, scene.bucket);
      await client.send(
        new PutBucketVersioningCommand({
          Bucket: scene.bucket,
          VersioningConfiguration: { Status: "Enabled" },
        }),
      );
      const put = await client.send(
        new PutObjectCommand({ Bucket: scene.bucket, Key: "v", Body: "1" }),
      );
      assert.ok(put.VersionId);
    } finally {
      client.destroy();
    }
  },
};
