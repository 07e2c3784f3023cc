// Runs on Bun: exercises the store at argv[2] with bucket argv[3] and the files of folder argv[4]; throws if something
// is wrong.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** The used methods of Bun's `S3Client`. */
interface BunS3Client {
  write(key: string, data: string | Uint8Array, options?: object): Promise<number>;
  delete(key: string): Promise<void>;
  exists(key: string): Promise<boolean>;
  stat(key: string): Promise<{ size: number; type: string; etag: string }>;
  presign(key: string, options: object): string;
  list(input: object): Promise<BunListing>;
  file(key: string): BunS3File;
}

interface BunS3File {
  text(): Promise<string>;
  bytes(): Promise<Uint8Array>;
  slice(from: number, to: number): BunS3File;
  stream(): AsyncIterable<Uint8Array>;
  writer(options: object): { write(data: Uint8Array): unknown; end(): Promise<number> };
}

interface BunListing {
  contents?: { key: string }[];
  commonPrefixes?: { prefix: string }[];
  isTruncated?: boolean;
  nextContinuationToken?: string;
}

interface BunGlobal {
  S3Client: new (options: object) => BunS3Client;
}

const PART_BYTES = 5 * 1024 * 1024;
const KEY = "a/ä b+c%&'(1)!*.txt";

const [, , endpoint, bucket, tree] = process.argv;
const { S3Client } = (globalThis as unknown as { Bun: BunGlobal }).Bun;
// The credentials come from the environment.
const s3 = new S3Client({ endpoint, bucket });

await s3.write(KEY, "hello", { type: "text/a", acl: "private" });
assert.equal(await s3.file(KEY).text(), "hello");
assert.equal(await s3.file(KEY).slice(1, 3).text(), "el");
const { size, type } = await s3.stat(KEY);
assert.deepEqual([size, type], [5, "text/a"]);
await assert.rejects(s3.file("none").text(), { code: "NoSuchKey" });
assert.equal(await s3.exists("none"), false);

const large = readFileSync(join(tree!, "large.bin"));
const writer = s3.file("parts").writer({ partSize: PART_BYTES, queueSize: 3 });
for (let at = 0; at < large.length; at += 1_000_000)
  writer.write(large.subarray(at, at + 1_000_000));
await writer.end();
const streamed: Uint8Array[] = [];
for await (const chunk of s3.file("parts").stream()) streamed.push(chunk);
assert.ok(Buffer.concat(streamed).equals(large));

// Bun adds `X-Amz-Acl` and `response-content-type` to the query of a presigned PUT URL.
const putUrl = s3.presign("by URL", { method: "PUT", acl: "public-read", type: "text/b" });
assert.equal((await fetch(putUrl, { method: "PUT", body: "by URL" })).status, 200);
assert.equal(await (await fetch(`${endpoint}/${bucket}/by%20URL`)).text(), "by URL");
const getUrl = s3.presign(KEY, { contentDisposition: 'attachment; filename="a b.txt"' });
const answer = await fetch(getUrl);
assert.equal(answer.headers.get("content-disposition"), 'attachment; filename="a b.txt"');

const grouped = await s3.list({ delimiter: "/", maxKeys: 1 });
assert.deepEqual(grouped.commonPrefixes, [{ prefix: "a/" }]);
const keys: string[] = [];
let page: BunListing = {};
do {
  page = await s3.list({ maxKeys: 2, continuationToken: page.nextContinuationToken });
  keys.push(...(page.contents ?? []).map(({ key }) => key));
} while (page.isTruncated === true);
assert.deepEqual(keys, [KEY, "by URL", "parts"]);
for (const key of keys) await s3.delete(key);
assert.equal(await s3.exists(KEY), false);
