// GetObject: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObject.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, digest, md5 } from "../case.ts";
import { PART, upload } from "../upload.ts";

const HOUR_MS = 3_600_000;

function toDate(ms: number): string {
  return new Date(ms).toUTCString();
}

export const cases = casesOf(
  "GetObject",
  [
    "answers the bytes with what clients rely on",
    async ({ ask, put }) => {
      await put("key", "hello", { "content-type": "text/plain" });
      const { status, headers, text } = await ask("GET", "/key");
      assert.equal(status, 200);
      assert.equal(text, "hello");
      assert.equal(headers["content-length"], "5");
      assert.equal(headers["content-type"], "text/plain");
      assert.equal(headers["etag"], `"${md5("hello")}"`);
      assert.equal(headers["accept-ranges"], "bytes");
      assert.match(headers["last-modified"]!, /^\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT$/);
      assert.ok(headers["x-amz-request-id"] !== undefined);
      assert.equal(headers["x-amz-version-id"], undefined);
      assert.ok(Math.abs(Date.parse(headers["last-modified"]!) - Date.now()) < HOUR_MS);
    },
  ],
  [
    "NoSuchKey with the key for what is not there",
    async ({ ask }) => {
      const answer = await ask("GET", "/some/key");
      assertError(answer, 404, "NoSuchKey");
      assert.equal(answer.document.get("Key"), "some/key");
    },
  ],
  [
    "NoSuchBucket with the bucket's name",
    async ({ client, bucket }) => {
      const answer = await client.send("GET", `/${bucket}-not/key`);
      assertError(answer, 404, "NoSuchBucket");
      assert.equal(answer.document.get("BucketName"), `${bucket}-not`);
    },
  ],
  [
    "a prefix of keys is no object",
    async ({ ask, put }) => {
      await put("folder/key", "x");
      assertError(await ask("GET", "/folder"), 404, "NoSuchKey");
      assertError(await ask("GET", "/folder/"), 404, "NoSuchKey");
    },
  ],
  [
    "a range is 206 with Content-Range",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      const { status, headers, text } = await ask("GET", "/key", {
        headers: { range: "bytes=2-5" },
      });
      assert.equal(status, 206);
      assert.equal(text, "2345");
      assert.equal(headers["content-range"], "bytes 2-5/10");
      assert.equal(headers["content-length"], "4");
      assert.equal(headers["etag"], `"${md5("0123456789")}"`);
    },
  ],
  [
    "a range without end goes to the last byte, one beyond the end is cut",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      for (const range of ["bytes=7-", "bytes=7-100"]) {
        const { status, headers, text } = await ask("GET", "/key", { headers: { range } });
        assert.equal(`${status} ${headers["content-range"]} ${text}`, "206 bytes 7-9/10 789");
      }
    },
  ],
  [
    "a suffix range gives the last bytes, or all of them",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      const last = await ask("GET", "/key", { headers: { range: "bytes=-3" } });
      assert.equal(`${last.status} ${last.text}`, "206 789");
      const all = await ask("GET", "/key", { headers: { range: "bytes=-30" } });
      assert.equal(`${all.status} ${all.headers["content-range"]}`, "206 bytes 0-9/10");
    },
  ],
  [
    "a range that ends further than numbers go is cut as well",
    async ({ ask, put }) => {
      await put("key", "hello");
      const headers = { range: "bytes=1-99999999999999999999" };
      const answer = await ask("GET", "/key", { headers });
      assert.equal(`${answer.status} ${answer.text}`, "206 ello");
    },
  ],
  [
    "InvalidRange with the object's size where a range begins beyond the end",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      const answer = await ask("GET", "/key", { headers: { range: "bytes=10-20" } });
      assertError(answer, 416, "InvalidRange");
      assert.equal(answer.headers["content-range"], "bytes */10");
      assert.equal(answer.document.get("ActualObjectSize"), "10");
    },
  ],
  [
    "InvalidRange for a first byte in an empty object, and the whole of it for its last bytes",
    async ({ ask, put }) => {
      await put("key");
      for (const range of ["bytes=0-0", "bytes=0-"]) {
        assertError(await ask("GET", "/key", { headers: { range } }), 416, "InvalidRange");
      }
      const answer = await ask("GET", "/key", { headers: { range: "bytes=-1" } });
      assert.equal(`${answer.status} ${answer.text}`, "200 ");
    },
  ],
  [
    "InvalidRange for a suffix of no bytes",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      const answer = await ask("GET", "/key", { headers: { range: "bytes=-0" } });
      assertError(answer, 416, "InvalidRange");
    },
  ],
  [
    "a range that is none is ignored",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      for (const range of [
        "bytes=5-2",
        "bytes=a-b",
        "lines=1-2",
        "bytes",
        "bytes=-",
        "bytes 1-2",
      ]) {
        const { status, text } = await ask("GET", "/key", { headers: { range } });
        assert.equal(`${range} ${status} ${text}`, `${range} 200 0123456789`);
      }
    },
  ],
  [
    "several ranges are answered with the whole object",
    async ({ ask, put }) => {
      await put("key", "0123456789");
      const { status, text } = await ask("GET", "/key", { headers: { range: "bytes=0-1,4-5" } });
      assert.equal(`${status} ${text}`, "200 0123456789");
    },
  ],
  [
    "ranges fit anywhere in a large object",
    async ({ ask, put }) => {
      const body = Buffer.from(Array.from({ length: 1_500_000 }, (_, index) => (index * 7) % 251));
      await put("key", body);
      const ranges = [
        [0, 0],
        [65_535, 65_536],
        [1_000_000, 1_200_000],
        [1_499_999, 1_499_999],
      ] as const;
      for (const [start, end] of ranges) {
        const answer = await ask("GET", "/key", { headers: { range: `bytes=${start}-${end}` } });
        assert.equal(answer.status, 206);
        assert.ok(answer.body.equals(body.subarray(start, end + 1)), `${start}-${end}`);
      }
    },
  ],
  [
    "If-Range with the very ETag gives the range, else the whole",
    async ({ ask, put }) => {
      const etag = (await put("key", "0123456789")).headers["etag"]!;
      const range = "bytes=0-1";
      const same = await ask("GET", "/key", { headers: { range, "if-range": etag } });
      assert.equal(`${same.status} ${same.text}`, "206 01");
      const other = await ask("GET", "/key", { headers: { range, "if-range": '"other"' } });
      assert.equal(`${other.status} ${other.text}`, "200 0123456789");
    },
  ],
  [
    "If-Match with the ETag, in quotes or not, or * is 200",
    async ({ ask, put }) => {
      await put("key", "x");
      for (const etag of [`"${md5("x")}"`, md5("x"), "*", `"a", "${md5("x")}"`]) {
        assert.equal((await ask("GET", "/key", { headers: { "if-match": etag } })).status, 200);
      }
    },
  ],
  [
    "If-Match with another ETag is PreconditionFailed and names the condition",
    async ({ ask, put }) => {
      await put("key", "x");
      const answer = await ask("GET", "/key", { headers: { "if-match": '"other"' } });
      assertError(answer, 412, "PreconditionFailed");
      assert.equal(answer.document.get("Condition"), "If-Match");
    },
  ],
  [
    "If-None-Match with the ETag is 304 without a body, with ETag and Last-Modified",
    async ({ ask, put }) => {
      const etag = (await put("key", "x")).headers["etag"]!;
      const answer = await ask("GET", "/key", { headers: { "if-none-match": etag } });
      assertEmpty(answer, 304);
      assert.equal(answer.headers["x-amz-version-id"], undefined, "the bucket knows no versions");
      assert.equal(answer.headers["etag"], etag);
      assert.ok(answer.headers["last-modified"] !== undefined);
    },
  ],
  [
    "If-None-Match with another ETag is 200",
    async ({ ask, put }) => {
      await put("key", "x");
      const answer = await ask("GET", "/key", { headers: { "if-none-match": '"other"' } });
      assert.equal(answer.status, 200);
    },
  ],
  [
    "If-Modified-Since is 200 for what is older and 304 for what is not",
    async ({ ask, put }) => {
      const before = toDate(Date.now() - HOUR_MS);
      await put("key", "x");
      const modified = (await ask("HEAD", "/key")).headers["last-modified"]!;
      const ask1 = await ask("GET", "/key", { headers: { "if-modified-since": before } });
      assert.equal(ask1.status, 200);
      assertEmpty(await ask("GET", "/key", { headers: { "if-modified-since": modified } }), 304);
    },
  ],
  [
    "If-Unmodified-Since is PreconditionFailed for what is older",
    async ({ ask, put }) => {
      await put("key", "x");
      const before = toDate(Date.now() - HOUR_MS);
      const answer = await ask("GET", "/key", { headers: { "if-unmodified-since": before } });
      assertError(answer, 412, "PreconditionFailed");
      assert.equal(answer.document.get("Condition"), "If-Unmodified-Since");
      const after = toDate(Date.now() + HOUR_MS);
      const fine = await ask("GET", "/key", { headers: { "if-unmodified-since": after } });
      assert.equal(fine.status, 200);
    },
  ],
  [
    "If-Match that holds wins over If-Unmodified-Since that does not",
    async ({ ask, put }) => {
      const etag = (await put("key", "x")).headers["etag"]!;
      const headers = { "if-match": etag, "if-unmodified-since": toDate(Date.now() - HOUR_MS) };
      assert.equal((await ask("GET", "/key", { headers })).status, 200);
    },
  ],
  [
    "If-None-Match that fails wins over If-Modified-Since that holds",
    async ({ ask, put }) => {
      const etag = (await put("key", "x")).headers["etag"]!;
      const headers = { "if-none-match": etag, "if-modified-since": toDate(Date.now() - HOUR_MS) };
      assertEmpty(await ask("GET", "/key", { headers }), 304);
    },
  ],
  [
    "a date that is none is no condition",
    async ({ ask, put }) => {
      await put("key", "x");
      const headers = { "if-modified-since": "yesterday" };
      assert.equal((await ask("GET", "/key", { headers })).status, 200);
    },
  ],
  [
    "the response-* parameters of a signed request override headers",
    async ({ ask, put }) => {
      await put("key", "x", { "content-type": "text/plain", "cache-control": "no-store" });
      const { headers } = await ask(
        "GET",
        "/key?response-content-type=text%2Fhtml&response-cache-control=max-age%3D1" +
          "&response-content-disposition=attachment%3B%20filename%3Da&response-content-encoding=br" +
          "&response-content-language=fr&response-expires=Thu%2C%2001%20Dec%202094%2016%3A00%3A00%20GMT",
      );
      assert.equal(headers["content-type"], "text/html");
      assert.equal(headers["cache-control"], "max-age=1");
      assert.equal(headers["content-disposition"], "attachment; filename=a");
      assert.equal(headers["content-encoding"], "br");
      assert.equal(headers["content-language"], "fr");
      assert.equal(headers["expires"], "Thu, 01 Dec 2094 16:00:00 GMT");
    },
  ],
  [
    "the response-* parameters are refused without a signature",
    async ({ ask, put }) => {
      await put("key", "x", { "x-amz-acl": "public-read" });
      assert.equal((await ask("GET", "/key", { as: "nobody" })).status, 200);
      const answer = await ask("GET", "/key?response-content-type=text%2Fhtml", { as: "nobody" });
      assertError(answer, 400, "InvalidRequest");
    },
  ],
  [
    "an override cannot smuggle a header",
    async ({ ask, put }) => {
      await put("key", "x");
      const answer = await ask("GET", "/key?response-content-type=a%0D%0Ax-smuggled%3A%201");
      assert.equal(answer.headers["x-smuggled"], undefined);
      assert.ok(answer.status === 400 || answer.status === 200);
    },
  ],
  [
    "tells checksums only to who asks for them",
    async ({ ask, put }) => {
      await put("key", "123456789", { "x-amz-checksum-crc32": "y/Q5Jg==" });
      const plain = await ask("GET", "/key");
      assert.equal(plain.headers["x-amz-checksum-crc32"], undefined);
      const asked = await ask("GET", "/key", { headers: { "x-amz-checksum-mode": "ENABLED" } });
      assert.equal(asked.headers["x-amz-checksum-crc32"], "y/Q5Jg==");
      assert.equal(asked.headers["x-amz-checksum-type"], "FULL_OBJECT");
    },
  ],
  [
    "tells no checksum of a part of the object",
    async ({ ask, put }) => {
      await put("key", "123456789", { "x-amz-checksum-crc32": "y/Q5Jg==" });
      const headers = { "x-amz-checksum-mode": "ENABLED", range: "bytes=0-1" };
      assert.equal(
        (await ask("GET", "/key", { headers })).headers["x-amz-checksum-crc32"],
        undefined,
      );
    },
  ],
  [
    "part 1 of an object that was put in one piece is all of it",
    async ({ ask, put }) => {
      await put("key", "hello");
      const { status, headers, text } = await ask("GET", "/key?partNumber=1");
      assert.equal(`${status} ${text}`, "206 hello");
      assert.equal(headers["content-range"], "bytes 0-4/5");
    },
  ],
  [
    "InvalidPartNumber for a part that is not there",
    async ({ ask, put }) => {
      await put("key", "hello");
      assertError(await ask("GET", "/key?partNumber=2"), 416, "InvalidPartNumber");
    },
  ],
  [
    "refuses a part beside a range",
    async ({ ask, put }) => {
      await put("key", "hello");
      const answer = await ask("GET", "/key?partNumber=1", { headers: { range: "bytes=0-1" } });
      assertError(answer, 400, "InvalidRequest");
    },
  ],
  [
    "InvalidArgument for a part number that is none",
    async ({ ask, put }) => {
      await put("key", "hello");
      for (const number of ["0", "10001", "a"]) {
        assertError(await ask("GET", `/key?partNumber=${number}`), 400, "InvalidArgument");
      }
    },
  ],
  [
    "gives large objects to many readers at once",
    async ({ ask, put }) => {
      const body = Buffer.from(Array.from({ length: 700_000 }, (_, index) => (index * 13) % 249));
      await put("key", body);
      const answers = await Promise.all(Array.from({ length: 8 }, () => ask("GET", "/key")));
      assert.ok(answers.every((answer) => answer.body.equals(body)));
    },
  ],
  [
    "tells of no legal hold and no retention where nobody set one",
    async ({ ask, put }) => {
      await put("key", "x");
      const { headers } = await ask("GET", "/key");
      const names = Object.keys(headers).filter((name) => name.includes("object-lock"));
      assert.deepEqual(names, []);
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask, put }) => {
      await put("key", "hello");
      assertError(await ask("GET", "/key", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "does not tell which keys are missing to who may not list",
    async ({ ask, bucket, createUser }) => {
      const user = await createUser({
        Effect: "Allow",
        Action: "s3:GetObject",
        Resource: `arn:aws:s3:::${bucket}/*`,
      });
      assertError(await ask("GET", "/missing", { as: user }), 403, "AccessDenied");
    },
  ],
  [
    "NotImplemented for the torrent",
    async ({ ask, put }) => {
      await put("key", "hello");
      assertError(await ask("GET", "/key?torrent"), 501, "NotImplemented");
    },
  ],
  [
    "takes parameters that mean nothing to it",
    async ({ ask, put }) => {
      await put("key", "hello");
      assert.equal((await ask("GET", "/key?v=3&utm_source=a")).text, "hello");
    },
  ],
  [
    "304 says how long what a client has may be kept",
    async ({ ask, put }) => {
      const expires = "Thu, 01 Dec 2033 16:00:00 GMT";
      const { headers } = await put("key", "hello", { "cache-control": "max-age=5", expires });
      const asked = { "if-none-match": headers["etag"]! };
      const answer = await ask("GET", "/key", { headers: asked });
      assertEmpty(answer, 304);
      assert.equal(answer.headers["cache-control"], "max-age=5");
      assert.equal(answer.headers["expires"], expires);
      const other = await ask("HEAD", "/key?response-cache-control=no-cache", { headers: asked });
      assert.equal(`${other.status} ${other.headers["cache-control"]}`, "304 no-cache");
    },
  ],
  [
    "If-Match never holds for a weak ETag, If-None-Match does",
    async ({ ask, put }) => {
      const weak = `W/${(await put("key", "hello")).headers["etag"]!}`;
      const match = await ask("GET", "/key", { headers: { "if-match": weak } });
      assertError(match, 412, "PreconditionFailed");
      assertEmpty(await ask("GET", "/key", { headers: { "if-none-match": weak } }), 304);
    },
  ],
  [
    "a part is told with its own checksum, which is that of the bytes that are sent",
    async (scene) => {
      await upload(scene, "key", [PART, "tail"], { "x-amz-checksum-algorithm": "SHA256" });
      const headers = { "x-amz-checksum-mode": "ENABLED" };
      for (const method of ["GET", "HEAD"]) {
        const answer = await scene.ask(method, "/key?partNumber=2", { headers });
        assert.equal(answer.status, 206);
        assert.equal(answer.headers["x-amz-checksum-sha256"], digest("sha256", "tail"));
        assert.equal(answer.headers["x-amz-checksum-type"], "COMPOSITE");
        assert.equal(answer.headers["x-amz-mp-parts-count"], "2");
      }
    },
  ],
  [
    "a range that is all of the object, and part 1 of one piece, are told with its checksum",
    async ({ ask, put }) => {
      const sum = digest("sha256", "hello");
      await put("key", "hello", { "x-amz-checksum-sha256": sum });
      const mode = { "x-amz-checksum-mode": "ENABLED" };
      const range = await ask("GET", "/key", { headers: { ...mode, range: "bytes=0-" } });
      assert.equal(range.headers["x-amz-checksum-sha256"], sum);
      const part = await ask("GET", "/key?partNumber=1", { headers: mode });
      assert.equal(part.headers["x-amz-checksum-sha256"], sum);
    },
  ],
  [
    "KeyTooLongError for a key that none can have",
    async ({ ask }) => {
      const answer = await ask("GET", `/${"k".repeat(1025)}`);
      assertError(answer, 400, "KeyTooLongError");
      assert.equal(answer.document.get("Size"), "1025");
      assert.equal(answer.document.get("MaxSizeAllowed"), "1024");
      assertEmpty(await ask("HEAD", `/${"k".repeat(1025)}`), 400);
    },
  ],
  [
    "InvalidArgument for fields about encryption that only writing has",
    async ({ ask, put }) => {
      await put("key", "x");
      const fields = {
        "x-amz-server-side-encryption": "AES256",
        "x-amz-server-side-encryption-aws-kms-key-id": "key",
        "x-amz-server-side-encryption-context": "e30=",
        "x-amz-server-side-encryption-bucket-key-enabled": "true",
      };
      for (const [name, value] of Object.entries(fields)) {
        const answer = await ask("GET", "/key", { headers: { [name]: value } });
        assertError(answer, 400, "InvalidArgument");
        assert.equal(answer.document.get("ArgumentName"), name);
        assertEmpty(await ask("HEAD", "/key", { headers: { [name]: value } }), 400);
      }
    },
  ],
);
