// Bodies in chunks: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-streaming.html and sigv4-streaming-trailers.html
import assert from "node:assert/strict";
import { assertError, casesOf, digest, md5, type Scene } from "../case.ts";
import type { ChunkedBody } from "../client.ts";

const CHECK = "123456789";
const CRC32 = "y/Q5Jg==";

function put({ ask }: Scene, chunks: ChunkedBody, headers: Record<string, string> = {}) {
  return ask("PUT", "/key", { chunks, headers });
}

async function assertStored({ ask }: Scene, text: string): Promise<void> {
  const answer = await ask("GET", "/key");
  assert.equal(answer.text, text);
  assert.equal(answer.headers["etag"], `"${md5(text)}"`);
}

async function assertNothing({ ask }: Scene): Promise<void> {
  assertError(await ask("GET", "/key"), 404, "NoSuchKey");
}

export const cases = casesOf(
  "Bodies in chunks",
  [
    "signed chunks are stored without their framing",
    async (scene) => {
      const answer = await put(scene, { pieces: ["hello ", "world"], isSigned: true });
      assert.equal(answer.status, 200, answer.text);
      await assertStored(scene, "hello world");
    },
  ],
  [
    "an empty body of signed chunks is an empty object",
    async (scene) => {
      assert.equal((await put(scene, { pieces: [], isSigned: true })).status, 200);
      await assertStored(scene, "");
    },
  ],
  [
    "many chunks of any size make one object",
    async (scene) => {
      const pieces = Array.from({ length: 40 }, (_, index) =>
        String(index).repeat(1 + index * 997),
      );
      assert.equal((await put(scene, { pieces, isSigned: true })).status, 200);
      await assertStored(scene, pieces.join(""));
    },
  ],
  [
    "Content-Encoding loses aws-chunked and keeps the rest",
    async (scene) => {
      for (const [given, kept] of [
        ["aws-chunked", undefined],
        ["aws-chunked,gzip", "gzip"],
        ["gzip, aws-chunked", "gzip"],
      ] as const) {
        const headers = { "content-encoding": given };
        const answer = await put(scene, { pieces: ["x"], isSigned: true }, headers);
        assert.equal(answer.status, 200, answer.text);
        const head = await scene.ask("HEAD", "/key");
        assert.equal(head.headers["content-encoding"], kept);
      }
    },
  ],
  [
    "SignatureDoesNotMatch for a chunk whose signature is another's",
    async (scene) => {
      const spoil = (coded: string) =>
        coded.replace(/chunk-signature=[0-9a-f]{64}/, `chunk-signature=${"0".repeat(64)}`);
      const answer = await put(scene, { pieces: ["hello"], isSigned: true, spoil });
      assertError(answer, 403, "SignatureDoesNotMatch");
      await assertNothing(scene);
    },
  ],
  [
    "SignatureDoesNotMatch for a chunk whose bytes were changed",
    async (scene) => {
      const spoil = (coded: string) => coded.replace("world", "wOrld");
      const answer = await put(scene, { pieces: ["hello ", "world"], isSigned: true, spoil });
      assertError(answer, 403, "SignatureDoesNotMatch");
      await assertNothing(scene);
    },
  ],
  [
    "SignatureDoesNotMatch for chunks in another order",
    async (scene) => {
      const spoil = (coded: string) => {
        const [first, second, ...rest] = coded.split(/(?<=\r\n[ab]{4}\r\n)/);
        return [second, first, ...rest].join("");
      };
      const answer = await put(scene, { pieces: ["aaaa", "bbbb"], isSigned: true, spoil });
      assertError(answer, 403, "SignatureDoesNotMatch");
      await assertNothing(scene);
    },
  ],
  [
    "SignatureDoesNotMatch for a last chunk that was forged",
    async (scene) => {
      const spoil = (coded: string) =>
        coded.replace(/0;chunk-signature=[0-9a-f]{64}/, `0;chunk-signature=${"0".repeat(64)}`);
      const answer = await put(scene, { pieces: ["hello"], isSigned: true, spoil });
      assertError(answer, 403, "SignatureDoesNotMatch");
      await assertNothing(scene);
    },
  ],
  [
    "IncompleteBody for fewer or more bytes than were said",
    async (scene) => {
      for (const length of ["4", "6"]) {
        const headers = { "x-amz-decoded-content-length": length };
        const answer = await put(scene, { pieces: ["hello"], isSigned: true }, headers);
        assertError(answer, 400, "IncompleteBody");
      }
      await assertNothing(scene);
    },
  ],
  [
    "IncompleteBody for a body without its last chunk",
    async (scene) => {
      const spoil = (coded: string) => coded.slice(0, coded.lastIndexOf("0;chunk-signature"));
      const answer = await put(scene, { pieces: ["hello"], isSigned: true, spoil });
      assertError(answer, 400, "IncompleteBody");
      await assertNothing(scene);
    },
  ],
  [
    "MissingContentLength without the length of what is decoded",
    async (scene) => {
      const answer = await scene.ask("PUT", "/key", {
        body: "0\r\n\r\n",
        payload: "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
      });
      assertError(answer, 411, "MissingContentLength");
    },
  ],
  [
    "InvalidRequest for sizes that are none, chunks longer than their size, and bytes behind the end",
    async (scene) => {
      const spoils = [
        (coded: string) => coded.replace(/^5/, "five"),
        (coded: string) => coded.replace("hello", "hello!"),
        (coded: string) => `${coded}more`,
        (coded: string) => coded.replaceAll("\r\n", "\n"),
      ];
      for (const spoil of spoils) {
        const answer = await put(scene, {
          pieces: ["hello"],
          isSigned: false,
          trailers: {},
          spoil,
        });
        assert.equal(answer.status, 400, answer.text);
      }
      await assertNothing(scene);
    },
  ],
  [
    "a trailing checksum of signed chunks is checked and kept",
    async (scene) => {
      const trailers = { "x-amz-checksum-crc32": CRC32 };
      const answer = await put(scene, { pieces: [CHECK], isSigned: true, trailers });
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers["x-amz-checksum-crc32"], CRC32);
      await assertStored(scene, CHECK);
    },
  ],
  [
    "BadDigest for a trailing checksum of other bytes",
    async (scene) => {
      for (const isSigned of [true, false]) {
        const trailers = { "x-amz-checksum-crc32": CRC32 };
        const answer = await put(scene, { pieces: ["other"], isSigned, trailers });
        assertError(answer, 400, "BadDigest");
      }
      await assertNothing(scene);
    },
  ],
  [
    "SignatureDoesNotMatch for a trailer that was changed",
    async (scene) => {
      const trailers = { "x-amz-checksum-sha256": digest("sha256", "other") };
      const spoil = (coded: string) =>
        coded.replace(digest("sha256", "other"), digest("sha256", CHECK));
      const answer = await put(scene, { pieces: [CHECK], isSigned: true, trailers, spoil });
      assertError(answer, 403, "SignatureDoesNotMatch");
      await assertNothing(scene);
    },
  ],
  [
    "chunks that are not signed bring a trailing checksum, as SDKs send it",
    async (scene) => {
      const trailers = { "x-amz-checksum-crc64nvme": "rosUhgp5mIg=" };
      const headers = {
        "content-encoding": "aws-chunked",
        "x-amz-sdk-checksum-algorithm": "CRC64NVME",
      };
      const answer = await put(
        scene,
        { pieces: ["12345", "6789"], isSigned: false, trailers },
        headers,
      );
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.headers["x-amz-checksum-crc64nvme"], "rosUhgp5mIg=");
      await assertStored(scene, CHECK);
    },
  ],
  [
    "comes in chunks of HTTP as well, as SDKs send streams",
    async (scene) => {
      const trailers = { "x-amz-checksum-crc32": CRC32 };
      const headers = { "transfer-encoding": "chunked", "content-encoding": "aws-chunked" };
      const chunks = { pieces: ["12345", "6789"], isSigned: false, trailers };
      const answer = await put(scene, chunks, headers);
      assert.equal(answer.status, 200, answer.text);
      await assertStored(scene, CHECK);
    },
  ],
  [
    "Content-MD5 is that of what is decoded",
    async (scene) => {
      const chunks = { pieces: ["12345", "6789"], isSigned: true };
      const good = await put(scene, chunks, { "content-md5": digest("md5", CHECK) });
      assert.equal(good.status, 200, good.text);
      const bad = await put(scene, chunks, { "content-md5": digest("md5", "other") });
      assertError(bad, 400, "BadDigest");
    },
  ],
  [
    "MalformedTrailerError for a trailer that was not announced, and an announced one that does not come",
    async (scene) => {
      const unannounced = await put(scene, {
        pieces: [CHECK],
        isSigned: false,
        trailers: { "x-amz-checksum-crc32": CRC32 },
        spoil: (coded) => coded.replace("x-amz-checksum-crc32", "x-amz-checksum-sha1"),
      });
      assertError(unannounced, 400, "MalformedTrailerError");
      const missing = await put(scene, {
        pieces: [CHECK],
        isSigned: false,
        trailers: { "x-amz-checksum-crc32": CRC32 },
        spoil: (coded) => coded.replace(/x-amz-checksum-crc32:.*\r\n/, ""),
      });
      assertError(missing, 400, "MalformedTrailerError");
      await assertNothing(scene);
    },
  ],
  [
    "InvalidRequest for a trailer that is no checksum",
    async (scene) => {
      const trailers = { "x-amz-meta-a": "1" };
      const answer = await put(scene, { pieces: [CHECK], isSigned: false, trailers });
      assertError(answer, 400, "InvalidRequest");
    },
  ],
  [
    "InvalidRequest for aws-chunked without a payload that says so",
    async ({ ask }) => {
      for (const more of [
        { "x-amz-decoded-content-length": "1" },
        { "x-amz-trailer": "x-amz-checksum-crc32" },
      ]) {
        const headers = { "content-encoding": "aws-chunked", ...more };
        assertError(await ask("PUT", "/key", { headers, body: "x" }), 400, "InvalidRequest");
      }
    },
  ],
  [
    "everyone may send chunks where everyone may put",
    async (scene) => {
      await scene.must("PUT", "?acl", { headers: { "x-amz-acl": "public-read-write" } });
      const answer = await scene.ask("PUT", "/key", {
        as: "nobody",
        chunks: {
          pieces: [CHECK],
          isSigned: false,
          trailers: { "x-amz-checksum-crc32": CRC32 },
        },
      });
      assert.equal(answer.status, 200, answer.text);
      await assertStored(scene, CHECK);
    },
  ],
  [
    "Content-Encoding may name aws-chunked where nothing is coded, and is kept without it",
    async ({ ask, put }) => {
      for (const [given, kept] of [
        ["aws-chunked", undefined],
        ["aws-chunked, gzip", "gzip"],
        ["gzip,aws-chunked", "gzip"],
      ] as const) {
        await put("key", "hello", { "content-encoding": given });
        const got = await ask("GET", "/key");
        assert.equal(got.text, "hello");
        assert.equal(got.headers["content-encoding"], kept);
      }
    },
  ],
  [
    "takes a trailer whose fields end in a line feed, with an empty line before its signature or behind its end",
    async (scene) => {
      const trailers = { "x-amz-checksum-crc32": CRC32 };
      const field = `x-amz-checksum-crc32:${CRC32}`;
      for (const isSigned of [true, false]) {
        const answer = await put(scene, {
          pieces: [CHECK],
          isSigned,
          trailers,
          spoil: (coded) => coded.replace(`${field}\r\n`, `${field}\n\r\n`),
        });
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.headers["x-amz-checksum-crc32"], CRC32);
        await assertStored(scene, CHECK);
      }
    },
  ],
  [
    "SignatureDoesNotMatch for a trailer without its signature, however many lines are empty",
    async (scene) => {
      for (const end of ["\r\n", "\r\n\r\n"]) {
        const answer = await put(scene, {
          pieces: [CHECK],
          isSigned: true,
          trailers: { "x-amz-checksum-crc32": CRC32 },
          spoil: (coded) => coded.replace(/x-amz-trailer-signature:\S*\r\n\r\n/, end),
        });
        assertError(answer, 403, "SignatureDoesNotMatch");
      }
      await assertNothing(scene);
    },
  ],
);
