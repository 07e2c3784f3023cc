// Usage and quotas over the admin API, and their enforcement for all kinds of writes, on a running service.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import { waitFor } from "@platform/testing/wait";
import { makeBytes } from "../store/fixture.ts";
import type { Answer } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";
import { vaultRoot } from "@platform/testing/staged-vault";

const JSON_TYPE = { "content-type": "application/json" };

interface UsageAnswer {
  bucket: string;
  objects: number;
  versions: number;
  delete_markers: number;
  bytes: number;
  uploads: number;
  upload_bytes: number;
  quota: { max_bytes: number | null; max_objects: number | null } | null;
}

let serving: Serving;
before(async () => {
  serving = await serve();
});
after(() => serving[Symbol.asyncDispose]());

async function makeBucket(name: string, quota?: object): Promise<void> {
  await serving.s3.must("PUT", `/${name}`);
  if (quota === undefined) return;
  const answer = await setQuota(name, quota);
  assert.equal(answer.status, 200, answer.text);
}

function setQuota(bucket: string, quota: object): Promise<Answer> {
  const body = JSON.stringify(quota);
  return serving.admin.send("PUT", `/api/v1/buckets/${bucket}/quota`, { headers: JSON_TYPE, body });
}

async function readUsage(bucket: string): Promise<UsageAnswer> {
  const { text } = await serving.admin.must("GET", `/api/v1/buckets/${bucket}/usage`);
  return JSON.parse(text) as UsageAnswer;
}

function put(target: string, bytes: number, seed = 1): Promise<Answer> {
  return serving.s3.send("PUT", target, { body: makeBytes(bytes, seed) });
}

function requireRefused(answer: Answer): void {
  assert.deepEqual([answer.status, answer.code], [403, "QuotaExceeded"], answer.text);
}

async function beginUpload(target: string): Promise<string> {
  const { text } = await serving.s3.must("POST", `${target}?uploads`);
  return /<UploadId>([^<]+)</.exec(text)![1]!;
}

function complete(target: string, uploadId: string, etags: readonly string[]): Promise<Answer> {
  const parts = etags.map(
    (etag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${etag}</ETag></Part>`,
  );
  const body = `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`;
  return serving.s3.send("POST", `${target}?uploadId=${uploadId}`, { body });
}

describe("usage", () => {
  test("objects, versions, delete markers and uploads in progress are counted, even after kill -9", async () => {
    await makeBucket("counted");
    await serving.s3.must("PUT", "/counted?versioning", {
      body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    });
    for (const bytes of [100, 20_000]) assert.equal((await put("/counted/a", bytes)).status, 200);
    assert.equal((await put("/counted/b", 7)).status, 200);
    await serving.s3.must("DELETE", "/counted/b");
    const uploadId = await beginUpload("/counted/c");
    const part = `/counted/c?partNumber=1&uploadId=${uploadId}`;
    for (const bytes of [500, 400]) assert.equal((await put(part, bytes)).status, 200);
    const usage: UsageAnswer = {
      bucket: "counted",
      objects: 1,
      versions: 3,
      delete_markers: 1,
      bytes: 20_107,
      uploads: 1,
      upload_bytes: 400,
      quota: null,
    };
    assert.deepEqual(await readUsage("counted"), usage);
    await serving.vault.kill();
    await serving.vault.start();
    assert.deepEqual(await readUsage("counted"), usage);

    await serving.s3.must("DELETE", `/counted/c?uploadId=${uploadId}`);
    const { uploads, upload_bytes: bytes } = await readUsage("counted");
    assert.deepEqual([uploads, bytes], [0, 0]);
  });

  test("the usage of all buckets is listed page by page, with their total", async () => {
    for (const name of ["list-a", "list-b", "list-c"]) {
      await makeBucket(name);
      assert.equal((await put(`/${name}/key`, 10)).status, 200);
    }
    const names: string[] = [];
    let objects = 0;
    let total = 0;
    for (let cursor: string | null = ""; cursor !== null;) {
      const query = cursor === "" ? "" : `&cursor=${cursor}`;
      const { text } = await serving.admin.must("GET", `/api/v1/usage?limit=2${query}`);
      const page = JSON.parse(text) as {
        items: UsageAnswer[];
        next_cursor: string | null;
        total: { objects: number };
      };
      assert.ok(page.items.length <= 2);
      for (const item of page.items) {
        names.push(item.bucket);
        objects += item.objects;
      }
      total = page.total.objects;
      cursor = page.next_cursor;
    }
    assert.deepEqual(names, names.toSorted());
    assert.ok(["list-a", "list-b", "list-c"].every((name) => names.includes(name)));
    assert.equal(objects, total);
  });

  test("an unknown bucket is 404, and nothing is returned without a signature", async () => {
    for (const path of ["usage", "quota"]) {
      const target = `/api/v1/buckets/no-such-bucket/${path}`;
      assert.equal((await serving.admin.send("GET", target)).status, 404);
      assert.equal((await serving.admin.send("GET", target, { key: null })).status, 401);
    }
    assert.equal((await setQuota("no-such-bucket", { max_bytes: 1 })).status, 404);
  });
});

describe("a quota", () => {
  test("is set, read and removed, and survives a restart", async () => {
    await makeBucket("kept", { max_bytes: 1_000 });
    const target = "/api/v1/buckets/kept/quota";
    const read = async () => JSON.parse((await serving.admin.must("GET", target)).text) as unknown;
    assert.deepEqual(await read(), { max_bytes: 1_000, max_objects: null });
    await serving.vault.stop();
    await serving.vault.start();
    assert.deepEqual(await read(), { max_bytes: 1_000, max_objects: null });
    assert.equal((await setQuota("kept", { max_objects: 2 })).status, 200);
    assert.deepEqual(await read(), { max_bytes: null, max_objects: 2 });
    for (const wrong of [{}, { max_bytes: 0 }, { max_bytes: 1.5 }, { max_size: 1 }]) {
      assert.equal((await setQuota("kept", wrong)).status, 400, JSON.stringify(wrong));
    }
    const headers = {
      "if-match": String((await serving.admin.must("GET", target)).headers["etag"]),
    };
    const change = (quota: object, condition: Record<string, string>) =>
      serving.admin.send("PUT", target, {
        headers: { ...JSON_TYPE, ...condition },
        body: JSON.stringify(quota),
      });
    assert.equal((await change({ max_objects: 3 }, headers)).status, 200);
    assert.equal((await change({ max_objects: 4 }, headers)).status, 412);
    assert.equal((await change({ max_objects: 4 }, { "if-none-match": "*" })).status, 412);
    assert.equal((await serving.admin.send("DELETE", target, { headers })).status, 412);
    const remove = () => serving.admin.send("DELETE", target);
    assert.equal((await remove()).status, 204);
    assert.equal((await remove()).status, 204);
    assert.equal((await serving.admin.send("GET", target)).status, 404);
    assert.equal((await put("/kept/key", 2_000)).status, 200);
  });

  test("refuses puts, copies, forms, parts and completions beyond it, and no deletion", async () => {
    await makeBucket("full", { max_bytes: 2_000, max_objects: 2 });
    assert.equal((await put("/full/a", 1_000)).status, 200);
    requireRefused(await put("/full/b", 1_001));
    const copy = { headers: { "x-amz-copy-source": "/full/a" } };
    assert.equal((await serving.s3.send("PUT", "/full/b", copy)).status, 200);
    requireRefused(await serving.s3.send("PUT", "/full/c", copy));
    requireRefused(await put("/full/c", 0));
    requireRefused(await postForm("full", "c", 1));
    assert.equal((await put("/full/b", 1_000, 2)).status, 200);

    const uploadId = await beginUpload("/full/d");
    const part = `/full/d?partNumber=1&uploadId=${uploadId}`;
    requireRefused(await put(part, 1));
    const range = { "x-amz-copy-source": "/full/a", "x-amz-copy-source-range": "bytes=0-9" };
    requireRefused(await serving.s3.send("PUT", part, { headers: range }));
    assert.equal((await put("/full/b", 100)).status, 200);
    const sent = await put(part, 900);
    assert.equal(sent.status, 200);
    requireRefused(await put("/full/b", 101));
    requireRefused(await complete("/full/d", uploadId, [String(sent.headers["etag"])]));
    await serving.s3.must("DELETE", "/full/b");
    // Completing adds no bytes.
    const done = await complete("/full/d", uploadId, [String(sent.headers["etag"])]);
    assert.equal(done.status, 200, done.text);
    const { objects, bytes, uploads, upload_bytes: left } = await readUsage("full");
    assert.deepEqual([objects, bytes, uploads, left], [2, 1_900, 0, 0]);
    for (const name of ["a", "d"]) await serving.s3.must("DELETE", `/full/${name}`);
    await serving.s3.must("DELETE", "/full");
  });

  test("limits versions, and allows delete markers", async () => {
    await makeBucket("versions", { max_objects: 2 });
    await serving.s3.must("PUT", "/versions?versioning", {
      body: "<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>",
    });
    const first = await put("/versions/a", 1);
    assert.equal((await put("/versions/a", 1)).status, 200);
    requireRefused(await put("/versions/a", 1));
    for (let count = 0; count < 3; count += 1) await serving.s3.must("DELETE", "/versions/a");
    requireRefused(await put("/versions/a", 1));
    const version = String(first.headers["x-amz-version-id"]);
    await serving.s3.must("DELETE", `/versions/a?versionId=${version}`);
    assert.equal((await put("/versions/a", 1)).status, 200);
    const usage = await readUsage("versions");
    assert.deepEqual([usage.objects, usage.versions, usage.delete_markers], [1, 2, 3]);
  });

  test("is not exceeded by concurrent writers", async () => {
    await makeBucket("race", { max_bytes: 100_000 });
    const answers = await Promise.all(
      Array.from({ length: 60 }, (_, index) => put(`/race/${index}`, 4_096)),
    );
    const stored = answers.filter(({ status }) => status === 200);
    assert.equal(stored.length, 24);
    for (const answer of answers) if (answer.status !== 200) requireRefused(answer);
    assert.equal((await readUsage("race")).bytes, 24 * 4_096);
  });

  test("is an error that the AWS SDK reports without retrying", async () => {
    await makeBucket("sdk", { max_bytes: 10 });
    const client = new S3Client({
      region: "us-east-1",
      endpoint: serving.vault.url,
      forcePathStyle: true,
      credentials: { accessKeyId: vaultRoot.accessKey, secretAccessKey: vaultRoot.secretKey },
    });
    try {
      await assert.rejects(
        client.send(new PutObjectCommand({ Bucket: "sdk", Key: "key", Body: makeBytes(11) })),
        (error: { name: string; $metadata: { attempts: number; httpStatusCode: number } }) => {
          const { attempts, httpStatusCode } = error.$metadata;
          assert.deepEqual([error.name, httpStatusCode, attempts], ["QuotaExceeded", 403, 1]);
          return true;
        },
      );
    } finally {
      client.destroy();
    }
  });

  test("is exported as a metric, with the usage of its bucket and the refusals", async () => {
    await makeBucket("gauged", { max_bytes: 1_000, max_objects: 5 });
    assert.equal((await put("/gauged/key", 600)).status, 200);
    requireRefused(await put("/gauged/more", 600));
    const read = async () => (await serving.admin.must("GET", "/metrics")).text;
    const text = await waitFor(async () => {
      const metrics = await read();
      return /errors_total\{code="QuotaExceeded"\} [1-9]/.test(metrics) ? metrics : undefined;
    }, "the refusal");
    for (const [name, value] of [
      ["usage_bytes", 600],
      ["usage_objects", 1],
      ["quota_bytes", 1_000],
      ["quota_objects", 5],
    ] as const) {
      assert.ok(text.includes(`platform_vault_bucket_${name}{bucket="gauged"} ${value}\n`), name);
    }
    assert.ok(!text.includes('bucket="counted"'));
  });
});

async function postForm(bucket: string, key: string, bytes: number): Promise<Answer> {
  const policy = {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Principal: "*",
        Action: "s3:PutObject",
        Resource: `arn:aws:s3:::${bucket}/*`,
      },
    ],
  };
  await serving.s3.must("PUT", `/${bucket}?policy`, { body: JSON.stringify(policy) });
  const boundary = "quota-form";
  const field = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const file = `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n`;
  const body = `${field("key", key)}${file}${"x".repeat(bytes)}\r\n--${boundary}--\r\n`;
  const headers = { "content-type": `multipart/form-data; boundary=${boundary}` };
  return serving.s3.send("POST", `/${bucket}`, { key: null, headers, body });
}
