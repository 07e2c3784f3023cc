// Buckets of another store under names of this one: what is passed on, what is refused, and copies between both.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { encodeAwsChunked, signRequest } from "@platform/s3/signature";
import { vaultRoot } from "@platform/testing/staged-vault";
import { waitFor } from "@platform/testing/wait";
import { OPERATIONS } from "../../src/s3/operations.ts";
import { addReader, callJson, readJson } from "../serving/json-api.ts";
import type { Answer, Ask } from "../serving/s3-client.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { makeBytes } from "../store/fixture.ts";
import { addRemote } from "../replication/stores.ts";

let near: Serving;
let far: Serving;
let rule: { id: string };

before(async () => {
  [near, far] = await Promise.all([serve(), serve()]);
  await addRemote(near, "far", far.vault.url);
  const body = { prefix: "far-", remote: "far" };
  rule = await readJson<{ id: string }>(callJson(near, "POST", "/admin/federation", body), 201);
  await near.s3.must("PUT", "/far-photos");
  await near.s3.must("PUT", "/local");
});
after(() => Promise.all([near[Symbol.asyncDispose](), far[Symbol.asyncDispose]()]));

test("requests about a federated bucket work as about one here", async () => {
  assert.equal((await far.s3.must("HEAD", "/far-photos")).status, 200, "it was made there");
  const body = makeBytes(3_000_000);
  const put = await near.s3.must("PUT", "/far-photos/a%20b", {
    body,
    headers: { "content-type": "image/png", "x-amz-meta-maker": "me", "x-amz-tagging": "k=v" },
  });
  const there = await far.s3.must("GET", "/far-photos/a%20b");
  assert.ok(there.body.equals(body));
  assert.equal(put.headers["etag"], there.headers["etag"]);
  const got = await near.s3.must("GET", "/far-photos/a%20b", { headers: { range: "bytes=10-19" } });
  assert.deepEqual([got.status, got.body.equals(body.subarray(10, 20))], [206, true]);
  const head = await near.s3.must("HEAD", "/far-photos/a%20b");
  for (const name of [
    "content-length",
    "content-type",
    "x-amz-meta-maker",
    "x-store-meta-maker",
    "etag",
    "last-modified",
  ])
    assert.equal(head.headers[name], there.headers[name], name);
  const unchanged = await near.s3.send("GET", "/far-photos/a%20b", {
    headers: { "if-none-match": String(head.headers["etag"]) },
  });
  assert.equal(unchanged.status, 304);
  const missing = await near.s3.send("GET", "/far-photos/missing");
  assert.deepEqual([missing.status, missing.code], [404, "NoSuchKey"]);
  assert.match(
    missing.text,
    new RegExp(`<RequestId>${String(missing.headers["x-amz-request-id"])}</RequestId>`),
  );
  assert.match((await near.s3.must("GET", "/far-photos?list-type=2")).text, /<Key>a b<\/Key>/);
  const names = (await near.s3.must("GET", "/")).text.matchAll(/<Name>([^<]*)</g);
  assert.deepEqual(
    [...names].map(([, name]) => name),
    ["far-photos", "local"],
  );
  await near.s3.must("DELETE", "/far-photos/a%20b");
  assert.equal((await far.s3.send("HEAD", "/far-photos/a%20b")).status, 404);
});

test("a body that is not as declared does not arrive, however it is sent", async () => {
  const body = makeBytes(700_000, 3);
  for (const size of [1_000, 700_000]) {
    const wrong = await near.s3.send("PUT", `/far-photos/wrong${size}`, {
      body: body.subarray(0, size),
      headers: { "x-amz-checksum-crc32": "AAAAAA==" },
    });
    assert.deepEqual([wrong.status, wrong.code], [400, "BadDigest"]);
    assert.equal((await far.s3.send("HEAD", `/far-photos/wrong${size}`)).status, 404);
  }
  const chunked = await putChunked("/far-photos/chunked", body);
  assert.equal(chunked.status, 200, chunked.text);
  assert.ok((await far.s3.must("GET", "/far-photos/chunked")).body.equals(body));
});

// As SDKs send bodies: coded, with signed chunks.
async function putChunked(target: string, body: Buffer): Promise<Answer> {
  const { accessKey, secretKey: secret } = vaultRoot;
  const headers = {
    host: `127.0.0.1:${near.vault.port}`,
    "content-encoding": "aws-chunked",
    "x-amz-decoded-content-length": String(body.length),
  };
  const payloadHash = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
  const head = signRequest(
    { accessKey, secret, region: "us-east-1" },
    { method: "PUT", target, headers, payloadHash, timeMs: Date.now() },
  );
  const ask: Ask = { body: encodeAwsChunked(body, 65_536, head), headers: head.headers, key: null };
  return near.s3.send("PUT", target, ask);
}

test("copies go there, come back, and stay there", async () => {
  const body = makeBytes(200_000, 4);
  const headers = { "content-type": "text/x", "x-amz-meta-a": "b", "x-amz-tagging": "t=1" };
  await near.s3.must("PUT", "/local/k", { body, headers });
  const copy = (target: string, source: string, more: object = {}) =>
    near.s3.must("PUT", target, { headers: { "x-amz-copy-source": source, ...more } });
  await copy("/far-photos/out", "/local/k");
  const out = await far.s3.must("GET", "/far-photos/out");
  assert.ok(out.body.equals(body));
  assert.deepEqual(
    [out.headers["content-type"], out.headers["x-amz-meta-a"], out.headers["x-amz-tagging-count"]],
    ["text/x", "b", "1"],
  );
  const { text } = await copy("/local/in", "/far-photos/out", {
    "x-amz-metadata-directive": "REPLACE",
    "x-amz-meta-new": "n",
  });
  assert.match(text, /<CopyObjectResult/);
  const back = await near.s3.must("GET", "/local/in");
  assert.ok(back.body.equals(body));
  assert.deepEqual(
    [
      back.headers["x-amz-meta-a"],
      back.headers["x-amz-meta-new"],
      back.headers["x-amz-tagging-count"],
    ],
    [undefined, "n", "1"],
  );
  await copy("/far-photos/again", "/far-photos/out");
  assert.ok((await far.s3.must("GET", "/far-photos/again")).body.equals(body));
  const missing = await near.s3.send("PUT", "/local/no", {
    headers: { "x-amz-copy-source": "/far-photos/nothing" },
  });
  assert.deepEqual([missing.status, missing.code], [404, "NoSuchKey"]);

  await near.s3.must("PUT", "/local?geo-placement", {
    body: JSON.stringify({ region: "eu", allowed: ["eu-1"] }),
  });
  const refused = await near.s3.send("PUT", "/far-photos/eu", {
    headers: { "x-amz-copy-source": "/local/k" },
  });
  assert.deepEqual([refused.status, refused.code], [403, "AccessDenied"]);
  await near.s3.must("DELETE", "/local?geo-placement");
});

test("an upload in parts goes there, with a part from here", async () => {
  const { text } = await near.s3.must("POST", "/far-photos/parts?uploads");
  const id = /<UploadId>(.*?)</.exec(text)![1]!;
  const first = await near.s3.must("PUT", `/far-photos/parts?uploadId=${id}&partNumber=1`, {
    body: makeBytes(5_300_000, 7),
  });
  await near.s3.must("PUT", "/local/part", { body: "tail" });
  const second = await near.s3.must("PUT", `/far-photos/parts?uploadId=${id}&partNumber=2`, {
    headers: { "x-amz-copy-source": "/local/part" },
  });
  const tags = [
    String(first.headers["etag"]),
    /<ETag>(.*?)</.exec(second.text)![1]!.replaceAll("&quot;", '"'),
  ];
  const parts = tags.map(
    (tag, index) => `<Part><PartNumber>${index + 1}</PartNumber><ETag>${tag}</ETag></Part>`,
  );
  await near.s3.must("POST", `/far-photos/parts?uploadId=${id}`, {
    body: `<CompleteMultipartUpload>${parts.join("")}</CompleteMultipartUpload>`,
  });
  assert.equal(
    (await far.s3.must("HEAD", "/far-photos/parts")).headers["content-length"],
    String(5_300_004),
  );
});

test("policies of the caller decide first, and nobody else gets in", async () => {
  await near.s3.must("PUT", "/far-photos/mine/a", { body: "x" });
  const key = await addReader(near, "far-photos", ["s3:GetObject", "s3:DeleteObject"]);
  assert.equal((await near.s3.must("GET", "/far-photos/mine/a", { key })).text, "x");
  const denied = async (method: string, target: string, ask: Ask = {}): Promise<void> => {
    const { status, code } = await near.s3.send(method, target, ask);
    assert.deepEqual(
      [status, method === "HEAD" ? "AccessDenied" : code],
      [403, "AccessDenied"],
      `${method} ${target}`,
    );
  };
  await denied("PUT", "/far-photos/mine/b", { key, body: "y" });
  await denied("GET", "/far-photos?list-type=2", { key });
  await denied("GET", "/far-other/a", { key });
  await denied("PUT", "/far-new", { key });
  await denied("GET", "/far-photos/mine/a", { key: null });
  await far.s3.must("PUT", "/far-photos?policy", {
    body: JSON.stringify({
      Version: "2012-10-17",
      Statement: [
        {
          Effect: "Allow",
          Principal: "*",
          Action: "s3:GetObject",
          Resource: "arn:aws:s3:::far-photos/*",
        },
      ],
    }),
  });
  await denied("GET", "/far-photos/mine/a", { key: null });
  await near.s3.must("PUT", "/local/secret", { body: "s" });
  await denied("PUT", "/far-photos/mine/b", {
    key,
    headers: { "x-amz-copy-source": "/local/secret" },
  });
});

/** A request for each operation that reaches its handler: query and body as far as they are needed to tell it apart. */
const REFUSED = new Set([
  "GetBucketPolicy",
  "PutBucketPolicy",
  "DeleteBucketPolicy",
  "GetBucketPolicyStatus",
  "GetBucketAcl",
  "PutBucketAcl",
  "GetObjectAcl",
  "PutObjectAcl",
  "GetBucketReplication",
  "PutBucketReplication",
  "DeleteBucketReplication",
  "InitiateObjectReplication",
  "GetBucketColdTier",
  "PutBucketColdTier",
  "DeleteBucketColdTier",
  "SweepBucketColdTier",
  "GetBucketColdTierSweep",
  "GetBucketTriggers",
  "PutBucketTriggers",
  "DeleteBucketTriggers",
  "GetBucketGeoPlacement",
  "PutBucketGeoPlacement",
  "DeleteBucketGeoPlacement",
  "PostObject",
]);
const LOCAL = new Set(["ListBuckets", "AssumeRoleWithWebIdentity"]);

test("each operation of the table is passed, refused or local", async () => {
  const count = async (): Promise<number> => {
    const { text } = await near.admin.must("GET", "/metrics");
    const rows = text.matchAll(
      /platform_vault_remote_requests_total\{[^}]*operation="forward"[^}]*\} (\d+)/g,
    );
    return [...rows].reduce((sum, [, value]) => sum + Number(value), 0);
  };
  for (const { name, level, method, parameters } of OPERATIONS) {
    if (LOCAL.has(name)) continue;
    const query = parameters
      .filter((item) => item !== "copy" && item !== "form")
      .map((item) => `${item}=${VALUES[item] ?? ""}`);
    const path = level === "bucket" ? "/far-table" : "/far-table/key";
    const headers = parameters.includes("copy") ? { "x-amz-copy-source": "/far-table/key" } : {};
    const before = await count();
    const answer = await near.s3.send(
      method,
      `${path}${query.length === 0 ? "" : `?${query.join("&")}`}`,
      { headers, body: BODIES[name] ?? "" },
    );
    const isPassed = (await count()) > before;
    assert.equal(isPassed, !REFUSED.has(name), `${name}: ${answer.status} ${answer.text}`);
    if (REFUSED.has(name)) assert.equal(answer.status, 403, name);
  }
});

const VALUES: Readonly<Record<string, string>> = {
  uploadId: "u",
  partNumber: "1",
  "list-type": "2",
  "select-type": "2",
  similar: "key",
  ask: "x",
  sql: "x",
};
const BODIES: Readonly<Record<string, string>> = {
  DeleteObjects: "<Delete><Object><Key>a</Key></Object></Delete>",
  PutObjectTagging: "<Tagging><TagSet/></Tagging>",
  PutObjectRetention: "<Retention/>",
  PutObjectLegalHold: "<LegalHold><Status>ON</Status></LegalHold>",
};

test("rules are refused that could not work, the longest prefix counts, and loops end", async () => {
  const add = (body: object) => callJson(near, "POST", "/admin/federation", body);
  assert.equal((await add({ prefix: "loc", remote: "far" })).status, 409, "a bucket here");
  assert.equal((await add({ prefix: "far-", remote: "far" })).status, 409, "the same prefix");
  assert.equal((await add({ prefix: "other-", remote: "nobody" })).status, 400);
  assert.equal((await add({ prefix: "Other", remote: "far" })).status, 400);
  assert.equal((await callJson(near, "DELETE", "/admin/remotes/far")).status, 409);
  // A rule with keys of its own, back to the store itself.
  const { accessKey: access_key, secretKey: secret_key } = vaultRoot;
  const self = { prefix: "far-self-", endpoint: near.vault.url, access_key, secret_key };
  const made = await readJson<{ id: string; remote: string }>(add(self), 201);
  assert.ok(!(await near.admin.must("GET", "/admin/federation")).text.includes(secret_key));
  const loop = await near.s3.send("GET", "/far-self-x/k");
  assert.deepEqual([loop.status, loop.code], [400, "InvalidRequest"]);
  assert.equal((await callJson(near, "DELETE", `/admin/federation/${made.id}`)).status, 204);
  assert.equal((await callJson(near, "GET", `/admin/remotes/${made.remote}`)).status, 404);
  // Over another store and back.
  await addRemote(far, "near", near.vault.url);
  await readJson(
    callJson(far, "POST", "/admin/federation", { prefix: "far-round-", remote: "near" }),
    201,
  );
  assert.equal((await near.s3.send("GET", "/far-round-x/k")).code, "InvalidRequest");
});

test("a remote that is down is 503 for its buckets, and nothing for others", async () => {
  await near.s3.must("GET", "/");
  await far.vault.kill();
  const down = await near.s3.send("GET", "/far-photos/k");
  assert.deepEqual([down.status, down.code], [503, "ServiceUnavailable"]);
  assert.ok(down.headers["retry-after"] !== undefined);
  await near.s3.must("PUT", "/local/while", { body: "x" });
  assert.match(
    (await near.s3.must("GET", "/")).text,
    /<Name>far-photos</,
    "names are kept for a while",
  );
  await far.vault.start();
  await waitFor(
    async () => (await near.s3.send("HEAD", "/far-photos")).status === 200,
    "the remote",
    60_000,
  );
  assert.equal((await callJson(near, "DELETE", `/admin/federation/${rule.id}`)).status, 204);
  assert.equal((await near.s3.send("GET", "/far-photos")).code, "NoSuchBucket");
  assert.equal((await far.s3.must("HEAD", "/far-photos")).status, 200);
});
