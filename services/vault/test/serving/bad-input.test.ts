// Invalid requests: the error names the reason, nothing is stored, and the service continues.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { vaultRoot } from "@platform/testing/staged-vault";
import { encodeAwsChunked, hashHex, signRequest } from "@platform/s3/signature";
import { addReader } from "./json-api.ts";
import type { Answer, Ask } from "./s3-client.ts";
import { serve, type Serving } from "./serving.ts";

// Large enough to be stored in its own file.
const BODY = randomBytes(3 * 1024 * 1024);
const IDENTITY = {
  accessKey: vaultRoot.accessKey,
  secret: vaultRoot.secretKey,
  region: "us-east-1",
};
const UNSIGNED = "UNSIGNED-PAYLOAD";

let serving: Serving;
before(async () => {
  serving = await serve({ env: { PLATFORM_VAULT_ENABLE_AUDIT: "false" } });
  await serving.s3.must("PUT", "/bad");
});
after(() => serving[Symbol.asyncDispose]());

function put(ask: Ask, target = "/bad/key"): Promise<Answer> {
  return serving.s3.send("PUT", target, { body: BODY, ...ask });
}

function digest(algorithm: string, body: Buffer): string {
  return createHash(algorithm).update(body).digest("base64");
}

/** A body in signed chunks, corrupted before it is sent. */
function putChunks(spoil: (coded: Buffer) => Buffer, decodedLength = BODY.length): Promise<Answer> {
  const payloadHash = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD";
  const host = `127.0.0.1:${serving.vault.port}`;
  const headers = {
    host,
    "content-encoding": "aws-chunked",
    "x-amz-decoded-content-length": String(decodedLength),
  };
  const request = { method: "PUT", target: "/bad/key", headers, payloadHash, timeMs: Date.now() };
  const head = signRequest(IDENTITY, request);
  const body = spoil(encodeAwsChunked(BODY, 64 * 1024, head));
  return serving.s3.send("PUT", "/bad/key", { body, headers: head.headers, key: null });
}

function flipLastByte(body: Buffer): Buffer {
  const flipped = Buffer.from(body);
  flipped[flipped.length - 200]! ^= 1;
  return flipped;
}

const invalidDocuments: [method: string, target: string][] = [
  ["PUT", "/new-bucket"],
  ["POST", "/bad?delete"],
  ["PUT", "/bad?tagging"],
  ["PUT", "/bad?policy"],
  ["PUT", "/bad/key?tagging"],
  ["PUT", "/bad/key?retention"],
  ["PUT", "/bad/key?legal-hold"],
  ["POST", "/bad/key?uploadId=none"],
];

test("a document is read after the caller's right is known", async () => {
  const key = await addReader(serving, "bad", ["s3:GetObject"]);
  for (const [method, target] of invalidDocuments) {
    for (const caller of [key, null]) {
      const answer = await serving.s3.send(method, target, { body: "<", key: caller });
      assert.deepEqual([answer.status, answer.code], [403, "AccessDenied"], `${method} ${target}`);
    }
    const known = await serving.s3.send(method, target, { body: "<" });
    assert.ok([400, 404].includes(known.status), `${method} ${target}: ${known.text}`);
  }
});

const refusedPuts: [what: string, send: () => Promise<Answer>, status: number, code: string][] = [
  [
    "a wrong secret",
    () => put({ key: { ...vaultRoot, secretKey: "not-the-secret" } }),
    403,
    "SignatureDoesNotMatch",
  ],
  [
    "an unknown key",
    () => put({ key: { ...vaultRoot, accessKey: "nobody" } }),
    403,
    "InvalidAccessKeyId",
  ],
  ["no key", () => put({ key: null }), 403, "AccessDenied"],
  [
    "a clock an hour behind",
    () => {
      const headers = { host: `127.0.0.1:${serving.vault.port}` };
      const request = { method: "PUT", target: "/bad/key", headers, payloadHash: UNSIGNED };
      const signed = signRequest(IDENTITY, { ...request, timeMs: Date.now() - 3_600_000 });
      return put({ headers: signed.headers, key: null });
    },
    403,
    "RequestTimeTooSkewed",
  ],
  [
    "a body other than the signed one",
    () => put({ payloadHash: hashHex("another") }),
    400,
    "XAmzContentSHA256Mismatch",
  ],
  [
    "a Content-MD5 of something else",
    () => put({ headers: { "content-md5": digest("md5", Buffer.from("x")) } }),
    400,
    "BadDigest",
  ],
  [
    "a checksum of something else",
    () => put({ headers: { "x-amz-checksum-sha256": digest("sha256", Buffer.from("x")) } }),
    400,
    "BadDigest",
  ],
  [
    "a checksum under this store's name of something else",
    () => put({ headers: { "x-store-checksum-sha1": digest("sha1", Buffer.from("x")) } }),
    400,
    "BadDigest",
  ],
  [
    "both names of a field with different values",
    () => put({ headers: { "x-amz-acl": "private", "x-store-acl": "public-read" } }),
    400,
    "InvalidRequest",
  ],
  ["a chunk whose bytes were changed", () => putChunks(flipLastByte), 403, "SignatureDoesNotMatch"],
  [
    "chunks that end too early",
    () => putChunks((coded) => coded.subarray(0, 200_000)),
    400,
    "IncompleteBody",
  ],
  [
    "chunks of fewer bytes than announced",
    () => putChunks((coded) => coded, BODY.length + 1),
    400,
    "IncompleteBody",
  ],
  [
    "more bytes than an object may have",
    () => put({ body: "", payloadHash: UNSIGNED, headers: { "content-length": "5368709121" } }),
    400,
    "EntityTooLarge",
  ],
  [
    "a key of more than 1024 bytes",
    () => put({}, `/bad/${"k".repeat(1_025)}`),
    400,
    "KeyTooLongError",
  ],
  ["a missing bucket", () => put({}, "/missing/key"), 404, "NoSuchBucket"],
  [
    "a failing condition",
    () => put({ headers: { "if-match": '"0123456789abcdef0123456789abcdef"' } }),
    404,
    "NoSuchKey",
  ],
];

describe("refused puts", () => {
  for (const [what, send, status, code] of refusedPuts) {
    test(`${what}: ${status} ${code}, and nothing is stored`, async () => {
      const answer = await send();
      assert.deepEqual([answer.status, answer.code], [status, code], answer.text);
      await assertNothingKept();
    });
  }

  test("a client that goes away in the middle of a body leaves nothing behind", async () => {
    const headers = { host: "a", "content-length": String(BODY.length) };
    const request = { method: "PUT", target: "/bad/key", headers, payloadHash: UNSIGNED };
    const signed = signRequest(IDENTITY, { ...request, timeMs: Date.now() });
    const lines = Object.entries(signed.headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect(serving.vault.port, "127.0.0.1");
    await new Promise((resolve) => socket.once("connect", resolve));
    socket.on("error", () => undefined);
    socket.write(`PUT /bad/key HTTP/1.1\r\n${lines.join("")}\r\n`);
    await new Promise((resolve) => socket.write(BODY.subarray(0, 2_500_000), resolve));
    await waitFor(async () => (await readStaged()) > 0, "the body on its way");
    socket.destroy();
    await assertNothingKept();
  });
});

test("a client that waits for 100 (Continue) is refused without it (RFC 9110 10.1.1)", async () => {
  const { port } = serving.vault;
  const ask = async (
    method: string,
    target: string,
    length: string,
    isSigned: boolean,
  ): Promise<string> => {
    const headers = { host: `127.0.0.1:${port}`, "content-length": length, expect: "100-continue" };
    const request = { method, target, headers, payloadHash: UNSIGNED, timeMs: Date.now() };
    const sent = isSigned ? signRequest(IDENTITY, request).headers : headers;
    const lines = Object.entries(sent).map(([name, value]) => `${name}: ${value}\r\n`);
    const socket = connect(port, "127.0.0.1");
    let received = "";
    socket.setEncoding("latin1").on("data", (piece) => (received += String(piece)));
    socket.write(`${method} ${target} HTTP/1.1\r\n${lines.join("")}\r\n`);
    const answer = await waitFor(() => received || undefined, "an answer");
    socket.destroy();
    return answer.slice(0, answer.indexOf("\r\n"));
  };
  for (const [method, target, length, isSigned, status] of [
    ["PUT", "/bad/key", "5", false, 403],
    ["PUT", "/bad/key?tagging", "5", false, 403],
    ["POST", "/bad?delete", "5", false, 403],
    ["PUT", "/missing-bucket/key", "5", true, 404],
    ["PUT", "/bad/key", String(6 * 1024 ** 3), true, 400],
    ["PUT", "/bad/key?tagging", String(2 * 1024 ** 2), true, 400],
    ["PUT", "/bad/key", "5", true, 100],
  ] as const) {
    const line = await ask(method, target, length, isSigned);
    assert.ok(line.startsWith(`HTTP/1.1 ${status} `), `${method} ${target} ${length}: ${line}`);
  }
});

describe("refused documents", () => {
  const bomb = `<!DOCTYPE x [${"<!ENTITY a 'aaaaaaaaaa'>".repeat(9)}]><Tagging>&a;</Tagging>`;
  const documents: [what: string, body: string, code: string][] = [
    ["not XML", "{}", "MalformedXML"],
    ["an entity bomb", bomb, "MalformedXML"],
    ["a thousand levels", `${"<a>".repeat(1_000)}${"</a>".repeat(1_000)}`, "MalformedXML"],
    ["another root", "<Delete></Delete>", "MalformedXML"],
    ["an element that is not closed", "<Tagging><TagSet>", "MalformedXML"],
    ["2 MiB", `<Tagging>${" ".repeat(2 * 1024 * 1024)}</Tagging>`, "MaxMessageLengthExceeded"],
  ];
  for (const [what, body, code] of documents) {
    test(`${what}: 400 ${code}`, async () => {
      const answer = await serving.s3.send("PUT", "/bad?tagging", { body });
      assert.deepEqual([answer.status, answer.code], [400, code]);
      const kept = await serving.s3.send("GET", "/bad?tagging");
      assert.equal(kept.code, "NoSuchTagSet");
    });
  }
});

describe("refused completions", () => {
  const complete = (parts: readonly (readonly [number, string])[]) =>
    `<CompleteMultipartUpload>${parts
      .map(
        ([number, etag]) => `<Part><PartNumber>${number}</PartNumber><ETag>${etag}</ETag></Part>`,
      )
      .join("")}</CompleteMultipartUpload>`;

  test("parts out of order, missing, too small or with another ETag are refused: the upload stays and can be completed", async () => {
    const { s3 } = serving;
    const created = await s3.must("POST", "/bad/parts?uploads");
    const id = /<UploadId>([^<]+)/.exec(created.text)![1]!;
    const target = `/bad/parts?uploadId=${id}`;
    const part = Buffer.alloc(5 * 1024 * 1024, "p");
    const etags: string[] = [];
    for (const [number, body] of [part, Buffer.from("small"), part].entries()) {
      const answer = await s3.must("PUT", `${target}&partNumber=${number + 1}`, { body });
      etags.push(String(answer.headers["etag"]));
    }
    const [one, two, three] = etags as [string, string, string];
    const refused: [body: string, code: string][] = [
      [
        complete([
          [3, three],
          [1, one],
        ]),
        "InvalidPartOrder",
      ],
      [
        complete([
          [1, one],
          [4, one],
        ]),
        "InvalidPart",
      ],
      [complete([[1, two]]), "InvalidPart"],
      [
        complete([
          [1, one],
          [2, two],
          [3, three],
        ]),
        "EntityTooSmall",
      ],
      [complete([]), "MalformedXML"],
    ];
    for (const [body, code] of refused) {
      const answer = await s3.send("POST", target, { body });
      assert.deepEqual([answer.status, answer.code], [400, code]);
    }
    assert.equal((await s3.send("GET", "/bad/parts")).code, "NoSuchKey");
    await s3.must("POST", target, {
      body: complete([
        [1, one],
        [3, three],
      ]),
    });
    assert.equal((await s3.must("HEAD", "/bad/parts")).headers["content-length"], "10485760");
    assert.equal(
      (await s3.send("POST", "/bad/parts?uploadId=unknown", { body: complete([[1, one]]) })).code,
      "NoSuchUpload",
    );
    await s3.must("DELETE", "/bad/parts");
  });
});

/** Bytes of incoming bodies. */
async function readStaged(): Promise<number> {
  const { text } = await serving.admin.must("GET", "/metrics", { key: null });
  return Number(/^platform_vault_staging_bytes (\d+)/m.exec(text)?.[1] ?? 0) + listStaging().length;
}

function listStaging(): string[] {
  return readdirSync(join(serving.vault.dataDir, "staging"));
}

async function assertNothingKept(): Promise<void> {
  await waitFor(async () => (await readStaged()) === 0, "an empty staging area");
  const listed = await serving.s3.must("GET", "/bad?list-type=2");
  assert.match(listed.text, /<KeyCount>0<\/KeyCount>/);
  assert.deepEqual(listStaging(), []);
}
