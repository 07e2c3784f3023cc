// PutObject: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObject.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, digest, md5 } from "../case.ts";

export const cases = casesOf(
  "PutObject",
  [
    "answers 200 without a body, with the MD5 in quotes as ETag",
    async ({ ask }) => {
      const answer = await ask("PUT", "/key", { body: "hello" });
      assertEmpty(answer, 200);
      assert.equal(answer.headers["etag"], `"${md5("hello")}"`);
      assert.equal(answer.headers["content-length"], "0");
    },
  ],
  [
    "stores an empty object",
    async ({ ask, put }) => {
      assert.equal((await put("empty")).headers["etag"], '"d41d8cd98f00b204e9800998ecf8427e"');
      const answer = await ask("GET", "/empty");
      assertEmpty(answer, 200);
      assert.equal(answer.headers["content-length"], "0");
    },
  ],
  [
    "replaces what was there",
    async ({ ask, put }) => {
      await put("key", "first", { "x-amz-meta-a": "1", "content-type": "text/a" });
      await put("key", "second");
      const answer = await ask("GET", "/key");
      assert.equal(answer.text, "second");
      assert.equal(answer.headers["x-amz-meta-a"], undefined);
      assert.equal(answer.headers["content-type"], "binary/octet-stream");
    },
  ],
  [
    "stores every byte value",
    async ({ ask, put }) => {
      const bytes = Buffer.from(Array.from({ length: 512 }, (_, index) => index % 256));
      await put("bytes", bytes);
      assert.deepEqual((await ask("GET", "/bytes")).body, bytes);
    },
  ],
  [
    "stores bodies of all ways of keeping them: 16 KiB, 1 MiB and more",
    async ({ ask, put }) => {
      for (const size of [16_384, 16_385, 1_048_576, 1_048_577, 3_000_000]) {
        const body = Buffer.alloc(size, `size ${size};`);
        await put(`size-${size}`, body);
        const answer = await ask("GET", `/size-${size}`);
        assert.ok(answer.body.equals(body), `${size} bytes came back changed`);
      }
    },
  ],
  [
    "keeps the headers that describe the content",
    async ({ ask, put }) => {
      const kept = {
        "content-type": "text/plain; charset=utf-8",
        "cache-control": "max-age=60, public",
        "content-disposition": 'attachment; filename="a b.txt"',
        "content-encoding": "gzip",
        "content-language": "de, en",
        expires: "Thu, 01 Dec 2094 16:00:00 GMT",
      };
      await put("key", "x", kept);
      const { headers } = await ask("HEAD", "/key");
      for (const [name, value] of Object.entries(kept)) assert.equal(headers[name], value);
    },
  ],
  [
    "keeps user metadata under lower-case names",
    async ({ ask, put }) => {
      await put("key", "x", { "X-Amz-Meta-Some-Name": "Some Value", "x-amz-meta-b": "2" });
      const answer = await ask("GET", "/key");
      assert.equal(answer.headers["x-amz-meta-some-name"], "Some Value");
      assert.equal(answer.headers["x-amz-meta-b"], "2");
      assert.ok(answer.rawNames.includes("x-amz-meta-some-name"));
    },
  ],
  [
    "keeps an empty value of user metadata",
    async ({ ask, put }) => {
      await put("key", "x", { "x-amz-meta-empty": "" });
      assert.equal((await ask("HEAD", "/key")).headers["x-amz-meta-empty"], "");
    },
  ],
  [
    "MetadataTooLarge above the size of metadata that the reference allows",
    async ({ ask, put }) => {
      // One byte for the name, the rest for the value.
      await put("key", "", { "x-amz-meta-a": "v".repeat(2_047) });
      const headers = { "x-amz-meta-a": "v".repeat(2_048) };
      const answer = await ask("PUT", "/key", { headers });
      assertError(answer, 400, "MetadataTooLarge");
      assert.equal(answer.document.get("Size"), "2049");
      assert.equal(answer.document.get("MaxSizeAllowed"), "2048");
    },
  ],
  [
    "takes a Content-MD5 that fits",
    async ({ put }) => {
      await put("key", "hello", { "content-md5": digest("md5", "hello") });
    },
  ],
  [
    "BadDigest for a Content-MD5 of other bytes, and stores nothing",
    async ({ ask }) => {
      const headers = { "content-md5": digest("md5", "other") };
      assertError(await ask("PUT", "/key", { headers, body: "hello" }), 400, "BadDigest");
      assertError(await ask("GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "InvalidDigest for a Content-MD5 that is no digest",
    async ({ ask }) => {
      for (const text of ["", "rrrr", "bm90IGEgZGlnZXN0", md5("hello")]) {
        const headers = { "content-md5": text };
        assertError(await ask("PUT", "/key", { headers, body: "hello" }), 400, "InvalidDigest");
      }
    },
  ],
  [
    "XAmzContentSHA256Mismatch for a hash of other bytes, and stores nothing",
    async ({ ask }) => {
      const payload = "a".repeat(64);
      assertError(
        await ask("PUT", "/key", { payload, body: "hello" }),
        400,
        "XAmzContentSHA256Mismatch",
      );
      assertError(await ask("GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "takes a payload that is not signed",
    async ({ ask, must }) => {
      await must("PUT", "/key", { payload: "UNSIGNED-PAYLOAD", body: "hello" });
      assert.equal((await ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "NoSuchBucket for a bucket that is not there",
    async ({ client, bucket }) => {
      const answer = await client.send("PUT", `/${bucket}-not/key`, { body: "x" });
      assertError(answer, 404, "NoSuchBucket");
      assert.equal(answer.document.get("BucketName"), `${bucket}-not`);
    },
  ],
  [
    "MissingContentLength for a body of unknown length",
    async ({ ask }) => {
      const answer = await ask("PUT", "/key", {
        body: "hello",
        payload: "UNSIGNED-PAYLOAD",
        headers: { "transfer-encoding": "chunked" },
      });
      assertError(answer, 411, "MissingContentLength");
    },
  ],
  [
    "EntityTooLarge above 5 GiB, before a byte is sent",
    async ({ client, bucket }) => {
      const length = 5 * 1024 ** 3 + 1;
      const target = client.presign("PUT", `/${bucket}/key`);
      const answer = await client.sendRaw(
        `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1.1 400 /);
      assert.match(answer, /<Code>EntityTooLarge<\/Code>/);
    },
  ],
  [
    "takes a key of 1024 bytes and refuses one of 1025",
    async ({ ask }) => {
      assert.equal((await ask("PUT", `/${"k".repeat(1024)}`)).status, 200);
      assertError(await ask("PUT", `/${"k".repeat(1025)}`), 400, "KeyTooLongError");
    },
  ],
  [
    "measures keys in bytes of UTF-8",
    async ({ ask }) => {
      assert.equal((await ask("PUT", `/${"%C3%A4".repeat(512)}`)).status, 200);
      assertError(await ask("PUT", `/${"%C3%A4".repeat(513)}`), 400, "KeyTooLongError");
    },
  ],
  [
    "keeps keys as they are: dots, slashes, spaces, signs and any script",
    async ({ ask, put }) => {
      const keys = [
        "a%20b",
        "a%2Bb",
        "%E2%98%83/%F0%9F%98%80",
        "a//b",
        "a/",
        "..%2Fa",
        ".",
        "a%25b",
        "a%26b%3Dc%3Fd",
        "%22quoted%22%3Ctag%3E",
      ];
      for (const key of keys) await put(key, key);
      for (const key of keys) assert.equal((await ask("GET", `/${key}`)).text, key);
    },
  ],
  [
    "takes a plus sign of a path for itself",
    async ({ ask, put }) => {
      await put("a+b", "1");
      assert.equal((await ask("GET", "/a%2Bb")).text, "1");
      assertError(await ask("GET", "/a%20b"), 404, "NoSuchKey");
    },
  ],
  [
    "lets a key and keys below it live side by side",
    async ({ ask, put }) => {
      await put("a", "1");
      await put("a/b", "2");
      await put("a/", "3");
      assert.equal((await ask("GET", "/a")).text, "1");
      assert.equal((await ask("GET", "/a/b")).text, "2");
      assert.equal((await ask("GET", "/a/")).text, "3");
    },
  ],
  [
    "keeps tags that come in a header, and counts them in answers",
    async ({ ask, put }) => {
      await put("key", "x", { "x-amz-tagging": "a=1&b%20c=d%2Fe" });
      assert.equal((await ask("HEAD", "/key")).headers["x-amz-tagging-count"], "2");
      const { document } = await ask("GET", "/key?tagging");
      assert.deepEqual(document.texts("TagSet/Tag/Key"), ["a", "b c"]);
      assert.deepEqual(document.texts("TagSet/Tag/Value"), ["1", "d/e"]);
    },
  ],
  [
    "refuses more than ten tags",
    async ({ ask }) => {
      const tagging = Array.from({ length: 11 }, (_, index) => `k${index}=v`).join("&");
      const answer = await ask("PUT", "/key", { headers: { "x-amz-tagging": tagging } });
      assertError(answer, 400, "BadRequest");
    },
  ],
  [
    "InvalidStorageClass for a class that is not known",
    async ({ ask }) => {
      const headers = { "x-amz-storage-class": "FASTEST" };
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidStorageClass");
    },
  ],
  [
    "keeps a storage class and names it in answers, but for STANDARD",
    async ({ ask, put }) => {
      await put("a", "x", { "x-amz-storage-class": "REDUCED_REDUNDANCY" });
      await put("b", "x", { "x-amz-storage-class": "STANDARD" });
      assert.equal((await ask("HEAD", "/a")).headers["x-amz-storage-class"], "REDUCED_REDUNDANCY");
      assert.equal((await ask("HEAD", "/b")).headers["x-amz-storage-class"], undefined);
    },
  ],
  [
    "If-None-Match: * stores only where nothing is",
    async ({ ask }) => {
      const headers = { "if-none-match": "*" };
      assert.equal((await ask("PUT", "/key", { headers, body: "first" })).status, 200);
      const second = await ask("PUT", "/key", { headers, body: "second" });
      assertError(second, 412, "PreconditionFailed");
      assert.equal(second.document.get("Condition"), "If-None-Match");
      assert.equal((await ask("GET", "/key")).text, "first");
    },
  ],
  [
    "If-None-Match: * stores exactly one of many at once",
    async ({ ask }) => {
      const headers = { "if-none-match": "*" };
      const answers = await Promise.all(
        Array.from({ length: 8 }, (_, index) => ask("PUT", "/key", { headers, body: `${index}` })),
      );
      assert.equal(answers.filter(({ status }) => status === 200).length, 1);
      assert.ok(answers.every(({ status }) => status === 200 || status === 412 || status === 409));
    },
  ],
  [
    "If-None-Match takes * alone",
    async ({ ask }) => {
      const headers = { "if-none-match": `"${md5("x")}"` };
      assertError(await ask("PUT", "/key", { headers }), 501, "NotImplemented");
    },
  ],
  [
    "If-Match stores over the very object",
    async ({ ask, put }) => {
      const etag = (await put("key", "first")).headers["etag"]!;
      await put("key", "second", { "if-match": etag });
      const again = await ask("PUT", "/key", { headers: { "if-match": etag }, body: "third" });
      assertError(again, 412, "PreconditionFailed");
      assert.equal((await ask("GET", "/key")).text, "second");
    },
  ],
  [
    "If-Match is NoSuchKey where nothing is",
    async ({ ask }) => {
      const headers = { "if-match": `"${md5("x")}"` };
      assertError(await ask("PUT", "/key", { headers }), 404, "NoSuchKey");
    },
  ],
  [
    "If-Match takes an ETag without quotes",
    async ({ put }) => {
      await put("key", "first");
      await put("key", "second", { "if-match": md5("first") });
    },
  ],
  [
    "refuses If-Match beside If-None-Match",
    async ({ ask }) => {
      const headers = { "if-match": `"${md5("x")}"`, "if-none-match": "*" };
      assert.equal((await ask("PUT", "/key", { headers })).status >= 400, true);
    },
  ],
  [
    "refuses a query parameter that it does not know, and stores nothing",
    async ({ ask }) => {
      assertError(await ask("PUT", "/key?unheard-of", { body: "x" }), 501, "NotImplemented");
      assertError(await ask("GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "takes a list or class that is empty for none, but no empty redirect",
    async ({ ask, put }) => {
      const names = ["acl", "grant-read", "storage-class"];
      await put("key", "x", Object.fromEntries(names.map((name) => [`x-amz-${name}`, ""])));
      assert.equal((await ask("HEAD", "/key")).headers["x-amz-storage-class"], undefined);
      const headers = { "x-amz-website-redirect-location": "" };
      assertError(await ask("PUT", "/key", { headers, body: "x" }), 400, "InvalidArgument");
    },
  ],
  [
    "ignores parameters that are about answers of reads",
    async ({ ask, must }) => {
      const target = "/key?response-content-type=a%2Fb&response-content-disposition=inline";
      await must("PUT", target, { body: "x" });
      const { headers } = await ask("HEAD", "/key");
      assert.equal(headers["content-type"], "binary/octet-stream");
      assert.equal(headers["content-disposition"], undefined);
    },
  ],
  [
    "ignores the x-id parameter of SDKs",
    async ({ ask, must }) => {
      await must("PUT", "/key?x-id=PutObject", { body: "x" });
      assert.equal((await ask("GET", "/key?x-id=GetObject")).text, "x");
    },
  ],
  [
    "answers with a checksum that it computed itself",
    async ({ put }) => {
      const { headers } = await put("key", "123456789");
      assert.equal(headers["x-amz-checksum-crc64nvme"], "rosUhgp5mIg=");
      assert.equal(headers["x-amz-checksum-type"], "FULL_OBJECT");
    },
  ],
  [
    "answers each extension header under both of its names",
    async ({ put }) => {
      const { headers } = await put("key", "x");
      for (const [name, value] of Object.entries(headers)) {
        if (name.startsWith("x-amz-")) {
          assert.equal(headers[name.replace("x-amz-", "x-store-")], value, name);
        }
      }
      assert.ok(headers["x-store-request-id"] !== undefined);
    },
  ],
  [
    "shows an overwrite to every reader at once",
    async ({ ask, put }) => {
      for (let round = 0; round < 5; round += 1) {
        await put("key", `round ${round}`);
        assert.equal((await ask("GET", "/key")).text, `round ${round}`);
      }
    },
  ],
  [
    "continues a request that expects 100",
    async ({ client, bucket }) => {
      const target = client.presign("PUT", `/${bucket}/key`);
      const answer = await client.sendRaw(
        `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nExpect: 100-continue\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello`,
      );
      assert.match(answer, /^HTTP\/1.1 100 [^\r]*\r\n\r\nHTTP\/1.1 200 /);
    },
  ],
  [
    "ignores an expectation that is empty or that nobody knows",
    async ({ client, bucket }) => {
      for (const expectation of ["", "200-ok"]) {
        const target = client.presign("PUT", `/${bucket}/key`);
        const answer = await client.sendRaw(
          `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nExpect: ${expectation}\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello`,
        );
        assert.match(answer, /^HTTP\/1.1 200 /, expectation);
      }
    },
  ],
);
