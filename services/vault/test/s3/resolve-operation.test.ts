// Requests of the API reference, and their operations.
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { OPERATIONS } from "../../src/s3/operations.ts";
import { resolveOperation } from "../../src/s3/resolve-operation.ts";
import { readAddress } from "../../src/s3/wire/address.ts";
import { readQuery } from "../../src/s3/wire/query.ts";
import { RequestFields } from "../../src/s3/wire/fields.ts";

function resolve(line: string, headers: Record<string, string> = {}, host = "localhost") {
  const [method, target] = line.split(" ") as [string, string];
  const [path, query = ""] = target.split("?");
  const address = readAddress(path!, host, "vault.example");
  const fields = new RequestFields(Object.entries(headers));
  const { operation } = resolveOperation(method, address, readQuery(query), fields);
  return { ...address, name: operation.name };
}

const EXAMPLES: [line: string, name: string][] = [
  ["GET /", "ListBuckets"],
  ["GET /?x-id=ListBuckets", "ListBuckets"],
  ["PUT /b", "CreateBucket"],
  ["PUT /b/", "CreateBucket"],
  ["GET /b?list-type=2&prefix=a&delimiter=%2F", "ListObjectsV2"],
  ["GET /b?prefix=&marker=", "ListObjects"],
  ["GET /b?versions&prefix=x", "ListObjectVersions"],
  ["GET /b?uploads", "ListMultipartUploads"],
  ["POST /b?delete", "DeleteObjects"],
  ["POST /b", "PostObject"],
  ["GET /b?object-lock=", "GetObjectLockConfiguration"],
  ["GET /b?policyStatus", "GetBucketPolicyStatus"],
  ["PUT /b/k?x-id=PutObject", "PutObject"],
  ["GET /b/k?versionId=1&response-content-type=a%2Fb", "GetObject"],
  ["GET /b/k?partNumber=2", "GetObject"],
  ["GET /b/page.css?v=3", "GetObject"],
  ["HEAD /b/k?partNumber=2", "HeadObject"],
  ["PUT /b/k?partNumber=1&uploadId=u", "UploadPart"],
  ["POST /b/k?uploads", "CreateMultipartUpload"],
  ["POST /b/k?uploadId=u", "CompleteMultipartUpload"],
  ["DELETE /b/k?uploadId=u", "AbortMultipartUpload"],
  ["GET /b/k?uploadId=u&max-parts=1", "ListParts"],
  ["PUT /b/k?lock", "PutObjectRetention"],
  ["GET /b/k?attributes", "GetObjectAttributes"],
];

describe("a request has one operation", () => {
  for (const [line, name] of EXAMPLES) {
    test(`${line} is ${name}`, () => assert.equal(resolve(line).name, name));
  }

  test("a copy source makes a copy of a put, under either name", () => {
    assert.equal(resolve("PUT /b/k", { "x-amz-copy-source": "a/b" }).name, "CopyObject");
    assert.equal(resolve("PUT /b/k", { "x-store-copy-source": "a/b" }).name, "CopyObject");
    const part = resolve("PUT /b/k?partNumber=1&uploadId=u", { "x-amz-copy-source": "a/b" });
    assert.equal(part.name, "UploadPartCopy");
  });

  test("a form to / is an exchange of a token", () => {
    const form = { "content-type": "application/x-www-form-urlencoded" };
    assert.equal(resolve("POST /", form).name, "AssumeRoleWithWebIdentity");
    assert.throws(() => resolve("POST /"), { code: "MethodNotAllowed" });
  });

  test("a name below the domain is a bucket, another name is not", () => {
    const hosted = resolve("GET /a/b%20c", {}, "photos.vault.example:9000");
    assert.deepEqual([hosted.name, hosted.bucket, hosted.key], ["GetObject", "photos", "a/b c"]);
    assert.equal(resolve("PUT /", {}, "photos.vault.example").name, "CreateBucket");
    assert.equal(resolve("GET /", {}, "vault.example").name, "ListBuckets");
    assert.equal(resolve("GET /b/k", {}, "other.example").bucket, "b");
  });

  test("keys keep their dots, slashes and characters", () => {
    assert.equal(resolve("GET /b/../x//y/").key, "../x//y/");
    assert.equal(resolve("GET /b//").key, "/");
    assert.equal(resolve("GET /b/%C3%A4%2F+").key, "ä/+");
    assert.throws(() => resolve("GET /b/%ff"), { code: "InvalidURI" });
  });
});

describe("unsupported requests are refused and never treated as other operations", () => {
  const REFUSALS: [line: string, code: string][] = [
    ["PUT /b?metadataTable", "NotImplemented"],
    ["PUT /b/k?analytics&id=1", "NotImplemented"],
    ["PUT /b/k?id=1", "NotImplemented"],
    ["DELETE /b?something", "NotImplemented"],
    ["PUT /b/k?something=1", "NotImplemented"],
    ["PUT /b/k?torrent", "NotImplemented"],
    ["GET /b/k?select", "MethodNotAllowed"],
    ["GET /b/k?restore", "MethodNotAllowed"],
    ["GET /b/k?sql=SELECT", "NotImplemented"],
    ["PUT /b?sql", "MethodNotAllowed"],
    ["POST /b?sql&prefix=a&some", "NotImplemented"],
    ["GET /b/k?torrent", "NotImplemented"],
    ["DELETE /b?location", "MethodNotAllowed"],
    ["PUT /b/k?partNumber=1", "InvalidArgument"],
    ["PUT /b/k?uploads", "MethodNotAllowed"],
    ["PUT /", "MethodNotAllowed"],
    ["PATCH /b/k", "MethodNotAllowed"],
    ["GET /b?acl&cors", "InvalidArgument"],
    ["DELETE /b?tagging&cors", "InvalidArgument"],
  ];
  for (const [line, code] of REFUSALS) {
    test(`${line} is ${code}`, () => assert.throws(() => resolve(line), { code }));
  }
});

test("a refused request names the feature", () => {
  for (const [line, feature] of [
    ["PUT /b?metadataTable", "metadataTable"],
    ["GET /b/k?torrent", "torrent"],
    ["PUT /b/k?analytics&id=1", "analytics"],
  ] as const)
    assert.throws(() => resolve(line), { message: `${feature} is not available yet.` }, line);
});

test("every operation has one row", () => {
  const names = OPERATIONS.map(({ name }) => name);
  assert.equal(new Set(names).size, names.length);
});
