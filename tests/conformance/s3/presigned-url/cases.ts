// Presigned URLs: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, type Scene } from "../case.ts";
import type { Ask, Presigning } from "../client.ts";

const MINUTE_MS = 60_000;

/** Uses a presigned URL without credentials. */
function use(
  { client, bucket }: Scene,
  method: string,
  key: string,
  presigning: Presigning = {},
  ask: Ask = {},
) {
  const target = client.presign(method, `/${bucket}${key}`, presigning);
  return client.send(method, target, { as: "nobody", ...ask });
}

/** Uses a presigned URL with a modified query. */
function useChanged({ client, bucket }: Scene, from: string | RegExp, to: string) {
  const target = client.presign("GET", `/${bucket}/key`).replace(from, to);
  return client.send("GET", target, { as: "nobody" });
}

export const cases = casesOf(
  "Presigned URLs",
  [
    "put, read and delete an object",
    async (scene) => {
      assertEmpty(await use(scene, "PUT", "/key", {}, { body: "hello" }), 200);
      assert.equal((await use(scene, "GET", "/key")).text, "hello");
      assertEmpty(await use(scene, "HEAD", "/key"), 200);
      assertEmpty(await use(scene, "DELETE", "/key"), 204);
      assertError(await use(scene, "GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "take X-Store- names as well",
    async (scene) => {
      await scene.put("key", "x");
      assert.equal((await use(scene, "GET", "/key", { prefix: "X-Store-" })).text, "x");
    },
  ],
  [
    "list and configure buckets",
    async (scene) => {
      await scene.put("key", "x");
      const list = await use(scene, "GET", "?list-type=2");
      assert.deepEqual(list.document.texts("Contents/Key"), ["key"]);
      assert.equal((await use(scene, "GET", "?versioning")).status, 200);
    },
  ],
  [
    "work for keys of any characters",
    async (scene) => {
      await scene.put("%C3%A4%20b%2Bc", "x");
      assert.equal((await use(scene, "GET", "/%C3%A4%20b%2Bc")).text, "x");
    },
  ],
  [
    "may override headers of the answer",
    async (scene) => {
      await scene.put("key", "x");
      const key = "/key?response-content-disposition=attachment%3B%20filename%3D%22a.txt%22";
      const answer = await use(scene, "GET", key);
      assert.equal(answer.headers["content-disposition"], 'attachment; filename="a.txt"');
    },
  ],
  [
    "AccessDenied once expired, with the times",
    async (scene) => {
      const time = new Date(Date.now() - 2 * MINUTE_MS);
      const answer = await use(scene, "GET", "/key", { time, expires: 60 });
      assertError(answer, 403, "AccessDenied");
      assert.equal(answer.document.get("Message"), "Request has expired");
      assert.equal(answer.document.get("X-Amz-Expires"), "60");
      assert.ok(Date.parse(answer.document.get("Expires")!) < Date.now());
      assert.ok(answer.document.get("ServerTime") !== undefined);
    },
  ],
  [
    "hold for as long as they say, even when they are old",
    async (scene) => {
      await scene.put("key", "x");
      const time = new Date(Date.now() - 60 * MINUTE_MS);
      assert.equal((await use(scene, "GET", "/key", { time, expires: 7_200 })).text, "x");
    },
  ],
  [
    "AccessDenied before their time",
    async (scene) => {
      const time = new Date(Date.now() + 20 * MINUTE_MS);
      assertError(await use(scene, "GET", "/key", { time }), 403, "AccessDenied");
    },
  ],
  [
    "hold for a week at most",
    async (scene) => {
      await scene.put("key", "x");
      assert.equal((await use(scene, "GET", "/key", { expires: 604_800 })).status, 200);
      const longer = await use(scene, "GET", "/key", { expires: 604_801 });
      assertError(longer, 400, "AuthorizationQueryParametersError");
    },
  ],
  [
    "AuthorizationQueryParametersError for times that are no numbers",
    async (scene) => {
      for (const expires of ["-1", "soon", ""]) {
        const answer = await use(scene, "GET", "/key", { expires });
        assertError(answer, 400, "AuthorizationQueryParametersError");
      }
    },
  ],
  [
    "AuthorizationQueryParametersError where a parameter is missing",
    async (scene) => {
      for (const name of ["Algorithm", "Credential", "Date", "Expires", "SignedHeaders"]) {
        const answer = await useChanged(scene, new RegExp(`X-Amz-${name}=[^&]*&`), "");
        assertError(answer, 400, "AuthorizationQueryParametersError");
      }
    },
  ],
  [
    "AuthorizationQueryParametersError for another algorithm, service or date",
    async (scene) => {
      const changes = [
        ["AWS4-HMAC-SHA256", "AWS4-HMAC-SHA512"],
        ["%2Fs3%2F", "%2Fec2%2F"],
        [/%2F\d{8}%2F/, "%2F20200101%2F"],
      ] as const;
      for (const [from, to] of changes) {
        const answer = await useChanged(scene, from, to);
        assertError(answer, 400, "AuthorizationQueryParametersError");
      }
    },
  ],
  [
    "SignatureDoesNotMatch for another signature, key, time or method",
    async (scene) => {
      const other = "a".repeat(64);
      const changes = [
        [/Signature=[0-9a-f]{64}/, `Signature=${other}`],
        ["/key?", "/other?"],
        ["Expires=300", "Expires=301"],
      ] as const;
      for (const [from, to] of changes) {
        assertError(await useChanged(scene, from, to), 403, "SignatureDoesNotMatch");
      }
      const target = scene.client.presign("GET", `/${scene.bucket}/key`);
      const put = await scene.client.send("PUT", target, { as: "nobody", body: "x" });
      assertError(put, 403, "SignatureDoesNotMatch");
    },
  ],
  [
    "hold only with the headers that were signed",
    async (scene) => {
      const presigning = { headers: { "content-type": "image/png" } };
      const good = { headers: { "content-type": "image/png" }, body: "x" };
      assertEmpty(await use(scene, "PUT", "/key", presigning, good), 200);
      const bad = { headers: { "content-type": "text/html" }, body: "x" };
      const answer = await use(scene, "PUT", "/key", presigning, bad);
      assertError(answer, 403, "SignatureDoesNotMatch");
      const none = await use(scene, "PUT", "/key", presigning, { body: "x" });
      assertError(none, 403, "SignatureDoesNotMatch");
    },
  ],
  [
    "AccessDenied for an extension header that was not signed",
    async (scene) => {
      const headers = { "x-amz-acl": "public-read" };
      const answer = await use(scene, "PUT", "/key", {}, { headers, body: "x" });
      assertError(answer, 403, "AccessDenied");
    },
  ],
  [
    "InvalidArgument beside an Authorization header",
    async ({ client, bucket }) => {
      const target = client.presign("GET", `/${bucket}/key`);
      assertError(await client.send("GET", target), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidAccessKeyId for a key that is not known",
    async (scene) => {
      const as = { accessKey: "AKIANOBODY", secretKey: "secret" };
      assertError(await use(scene, "GET", "/key", { as }), 403, "InvalidAccessKeyId");
    },
  ],
  [
    "may do what the signer may, and no more",
    async (scene) => {
      await scene.put("key", "x");
      const Resource = `arn:aws:s3:::${scene.bucket}/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:GetObject", Resource });
      assert.equal((await use(scene, "GET", "/key", { as })).text, "x");
      assertError(await use(scene, "DELETE", "/key", { as }), 403, "AccessDenied");
    },
  ],
  [
    "put an object with metadata that was signed",
    async (scene) => {
      const headers = { "x-amz-meta-a": "1" };
      assertEmpty(await use(scene, "PUT", "/key", { headers }, { headers, body: "x" }), 200);
      assert.equal((await scene.ask("HEAD", "/key")).headers["x-amz-meta-a"], "1");
    },
  ],
  [
    "bring fields of the put in their query, but no checksum",
    async (scene) => {
      // SDKs that sign without the body use the checksum of an empty one.
      const checksum = "x-amz-checksum-crc32=AAAAAA%3D%3D&x-amz-sdk-checksum-algorithm=CRC32";
      const target = `/key?x-amz-meta-a=1&x-amz-acl=public-read&${checksum}&x-id=PutObject`;
      assertEmpty(await use(scene, "PUT", target, {}, { body: "hello" }), 200);
      const answer = await scene.ask("GET", "/key", { as: "nobody" });
      assert.equal(answer.text, "hello");
      assert.equal(answer.headers["x-amz-meta-a"], "1");
    },
  ],
  [
    "bring fields that describe the body in their query, and fields that are signed by name, but not sent",
    async (scene) => {
      // As in version 2 of the SDK for JavaScript.
      const body = "Content-Type=image%2Fpng&Cache-Control=no-store&Content-Disposition=inline";
      const presigning = { headers: { "x-amz-meta-a": "1" } };
      const put = await use(scene, "PUT", `/key?${body}&x-amz-meta-a=1`, presigning, { body: "x" });
      assertEmpty(put, 200);
      const { headers } = await scene.must("HEAD", "/key");
      assert.equal(headers["content-type"], "image/png");
      assert.equal(headers["cache-control"], "no-store");
      assert.equal(headers["content-disposition"], "inline");
      assert.equal(headers["x-amz-meta-a"], "1");
      const other = await use(scene, "PUT", "/key?x-amz-meta-a=2", presigning, { body: "x" });
      assertError(other, 403, "SignatureDoesNotMatch");
      const digest = "Content-MD5=1B2M2Y8AsgTpgAmY7PhCfg%3D%3D";
      const spoilt = await use(scene, "PUT", `/key?${digest}`, {}, { body: "x" });
      assertError(spoilt, 400, "BadDigest");
    },
  ],
  [
    "a field that is sent counts more than one in the query",
    async (scene) => {
      const headers = { "x-amz-meta-a": "sent" };
      await use(scene, "PUT", "/key?x-amz-meta-a=query", { headers }, { headers, body: "x" });
      assert.equal((await scene.ask("HEAD", "/key")).headers["x-amz-meta-a"], "sent");
    },
  ],
);
