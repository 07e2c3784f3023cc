// Signature Version 2: https://docs.aws.amazon.com/AmazonS3/latest/userguide/RESTAuthentication.html
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { assertEmpty, assertError, casesOf, type Scene } from "../case.ts";
import type { Ask } from "../client.ts";
import { DOMAIN } from "../stage.ts";
import type { Credentials } from "../signature.ts";

/** Signed parts besides method and path. */
interface Parts {
  /** Path and signed parameters; default: those of the target. */
  resource?: string;
  /** Sorted `x-amz-` header lines without line ends. */
  lines?: readonly string[];
  contentType?: string;
  as?: Credentials;
}

function signText(
  { client, bucket }: Scene,
  method: string,
  target: string,
  date: string,
  { resource = `/${bucket}${target}`, lines = [], contentType = "", as = client.root }: Parts,
): string {
  const text = [method, "", contentType, date, ...lines, resource].join("\n");
  return createHmac("sha1", as.secretKey).update(text).digest("base64");
}

/** Sends a request with a signed Authorization header. */
function sign(scene: Scene, method: string, target: string, ask: Ask = {}, parts: Parts = {}) {
  const date = ask.headers?.["date"] ?? new Date().toUTCString();
  const { accessKey } = parts.as ?? scene.client.root;
  const signature = signText(scene, method, target, date, parts);
  const headers = { date, ...ask.headers, authorization: `AWS ${accessKey}:${signature}` };
  return scene.ask(method, target, { ...ask, headers, as: "nobody" });
}

/** Sends a request to a presigned URL; `more` are unsigned parameters. */
function present(
  scene: Scene,
  method: string,
  target: string,
  { ask = {}, more = "", seconds = 60, ...parts }: Parts & PresentOptions = {},
) {
  const expires = String(Math.floor(Date.now() / 1000) + seconds);
  const signature = encodeURIComponent(signText(scene, method, target, expires, parts));
  const { accessKey } = parts.as ?? scene.client.root;
  const query = `AWSAccessKeyId=${accessKey}&Signature=${signature}&Expires=${expires}`;
  const separator = target.includes("?") ? "&" : "?";
  return scene.ask(method, `${target}${separator}${query}${more}`, { ...ask, as: "nobody" });
}

interface PresentOptions {
  ask?: Ask;
  more?: string;
  seconds?: number;
}

export const cases = casesOf(
  "Signature Version 2",
  [
    "puts, reads and deletes objects",
    async (scene) => {
      assertEmpty(await sign(scene, "PUT", "/key", { body: "hello" }), 200);
      assert.equal((await sign(scene, "GET", "/key")).text, "hello");
      assertEmpty(await sign(scene, "DELETE", "/key"), 204);
    },
  ],
  [
    "covers extension fields and the type of the content",
    async (scene) => {
      const headers = { "x-amz-meta-b": "2", "x-amz-meta-a": "1", "content-type": "text/a" };
      const lines = ["x-amz-meta-a:1", "x-amz-meta-b:2"];
      const parts = { lines, contentType: "text/a" };
      assertEmpty(await sign(scene, "PUT", "/key", { headers, body: "x" }, parts), 200);
      const other = { headers: { ...headers, "x-amz-meta-a": "3" }, body: "x" };
      assertError(await sign(scene, "PUT", "/key", other, parts), 403, "SignatureDoesNotMatch");
      const added = { headers: { ...headers, "x-store-meta-c": "4" }, body: "x" };
      assertError(await sign(scene, "PUT", "/key", added, parts), 403, "AccessDenied");
    },
  ],
  [
    "x-amz-date is signed in place of Date",
    async (scene) => {
      const time = new Date().toUTCString();
      const signature = signText(scene, "GET", "", "", { lines: [`x-amz-date:${time}`] });
      const authorization = `AWS ${scene.client.root.accessKey}:${signature}`;
      const headers = { "x-amz-date": time, authorization };
      assert.equal((await scene.ask("GET", "", { headers, as: "nobody" })).status, 200);
    },
  ],
  [
    "covers subresources, with or without a sign behind their names, and buckets with or without a slash",
    async (scene) => {
      const { bucket } = scene;
      for (const resource of [`/${bucket}?acl`, `/${bucket}?acl=`, `/${bucket}/?acl`]) {
        assert.equal((await sign(scene, "GET", "?acl", {}, { resource })).status, 200);
      }
      const resource = `/${bucket}`;
      const bare = await sign(scene, "GET", "?acl", {}, { resource });
      assertError(bare, 403, "SignatureDoesNotMatch");
    },
  ],
  [
    "parameters of listings need not be signed",
    async (scene) => {
      await scene.putAll("a/1", "b/1");
      const resource = `/${scene.bucket}/`;
      const answer = await sign(scene, "GET", "?list-type=2&prefix=a%2F", {}, { resource });
      assert.deepEqual(answer.document.texts("Contents/Key"), ["a/1"]);
    },
  ],
  [
    "presigned URLs may bring fields in the query, in any case of letters: they count as fields",
    async (scene) => {
      const ask = { body: "x" };
      const parts = { lines: ["x-amz-meta-a:b"], contentType: "image/png" };
      const more = "&Content-Type=image%2Fpng&Cache-Control=no-store&x-amz-meta-a=b";
      assertEmpty(await present(scene, "PUT", "/key", { ...parts, ask, more }), 200);
      const { headers } = await scene.must("HEAD", "/key");
      assert.equal(headers["content-type"], "image/png");
      assert.equal(headers["cache-control"], "no-store");
      assert.equal(headers["x-amz-meta-a"], "b");
      for (const other of [
        "&Content-Type=text%2Fa",
        "&x-amz-meta-a=c",
        `${more}&x-amz-acl=private`,
      ]) {
        const answer = await present(scene, "PUT", "/key", { ...parts, ask, more: other });
        assertError(answer, 403, "SignatureDoesNotMatch");
      }
      const store = await present(scene, "PUT", "/key", { ask, more: "&x-store-meta-a=b" });
      assertError(store, 403, "AccessDenied");
    },
  ],
  [
    "what somebody adds to a presigned URL and means nothing does not spoil it",
    async (scene) => {
      await scene.put("key", "x");
      assert.equal((await present(scene, "GET", "/key", { more: "&utm_source=mail" })).text, "x");
      const answer = await present(scene, "GET", "", { more: "&metadata=true" });
      assert.deepEqual(answer.document.texts("Contents/Key"), ["key"]);
    },
  ],
  [
    "AccessDenied for subresources that this version does not sign",
    async (scene) => {
      await scene.put("key", "x");
      const resource = `/${scene.bucket}/key`;
      for (const name of ["attributes", "retention"]) {
        const answer = await sign(scene, "GET", `/key?${name}`, {}, { resource });
        assertError(answer, 403, "AccessDenied");
      }
    },
  ],
  [
    "covers the bucket of the host",
    async (scene) => {
      await scene.put("key", "x");
      const date = new Date().toUTCString();
      const signature = signText(scene, "GET", "/key", date, {});
      const authorization = `AWS ${scene.client.root.accessKey}:${signature}`;
      const host = `${scene.bucket}.${DOMAIN}`;
      const headers = { date, authorization };
      const answer = await scene.client.send("GET", "/key", { host, headers, as: "nobody" });
      assert.equal(answer.text, "x");
      const other = `other.${DOMAIN}`;
      const wrong = await scene.client.send("GET", "/key", { host: other, headers, as: "nobody" });
      assertError(wrong, 403, "SignatureDoesNotMatch");
    },
  ],
  [
    "RequestTimeTooSkewed more than fifteen minutes away, AccessDenied without a time",
    async (scene) => {
      const date = new Date(Date.now() - 16 * 60_000).toUTCString();
      assertError(await sign(scene, "GET", "", { headers: { date } }), 403, "RequestTimeTooSkewed");
      const headers = { authorization: `AWS ${scene.client.root.accessKey}:x`, date: "soon" };
      const answer = await scene.ask("GET", "", { headers, as: "nobody" });
      assertError(answer, 403, "AccessDenied");
    },
  ],
  [
    "InvalidArgument for what is no key and signature, InvalidAccessKeyId for a key that is not known",
    async (scene) => {
      const headers = { authorization: "AWS nothing", date: new Date().toUTCString() };
      const first = await scene.ask("GET", "", { headers, as: "nobody" });
      assertError(first, 400, "InvalidArgument");
      const as = { accessKey: "AKIANOBODY", secretKey: "secret" };
      assertError(await sign(scene, "GET", "", {}, { as }), 403, "InvalidAccessKeyId");
    },
  ],
  [
    "presigned URLs read, and put with fields that they bring in their query",
    async (scene) => {
      const lines = ["x-amz-acl:public-read", "x-amz-meta-a:1"];
      const more = "&x-amz-acl=public-read&x-amz-meta-a=1&content-type=text%2Fa";
      const options = { lines, more, contentType: "text/a", ask: { body: "hello" } };
      assertEmpty(await present(scene, "PUT", "/key", options), 200);
      const answer = await scene.ask("GET", "/key", { as: "nobody" });
      assert.equal(answer.headers["content-type"], "text/a");
      assert.equal(answer.headers["x-amz-meta-a"], "1");
      assert.equal((await present(scene, "GET", "/key")).text, "hello");
    },
  ],
  [
    "presigned URLs override fields of the answer with what is signed, decoded",
    async (scene) => {
      await scene.put("key", "x");
      const resource = `/${scene.bucket}/key?response-content-type=text/a; b`;
      const target = "/key?response-content-type=text%2Fa%3B%20b";
      const answer = await present(scene, "GET", target, { resource });
      assert.equal(answer.headers["content-type"], "text/a; b");
    },
  ],
  [
    "AccessDenied for a presigned URL that has ended, or says no time",
    async (scene) => {
      await scene.put("key", "x");
      assertError(await present(scene, "GET", "/key", { seconds: -10 }), 403, "AccessDenied");
      for (const rest of ["", "&Expires=soon", "&Expires="]) {
        const target = `/key?AWSAccessKeyId=a&Signature=b${rest}`;
        assertError(await scene.ask("GET", target, { as: "nobody" }), 403, "AccessDenied");
      }
    },
  ],
  [
    "SignatureDoesNotMatch for a presigned URL with another key, method or subresource",
    async (scene) => {
      await scene.putAll("key", "other");
      const resource = `/${scene.bucket}/key`;
      for (const [method, target] of [
        ["GET", "/other"],
        ["DELETE", "/key"],
        ["GET", "/key?acl"],
      ] as const) {
        const date = String(Math.floor(Date.now() / 1000) + 60);
        const signature = signText(scene, "GET", "/key", date, { resource });
        const query = `AWSAccessKeyId=${scene.client.root.accessKey}&Signature=${encodeURIComponent(signature)}&Expires=${date}`;
        const separator = target.includes("?") ? "&" : "?";
        const answer = await scene.ask(method, target + separator + query, { as: "nobody" });
        assertError(answer, 403, "SignatureDoesNotMatch");
      }
    },
  ],
  [
    "policies tell it from Version 4",
    async (scene) => {
      await scene.put("key", "x");
      const policy = {
        Version: "2012-10-17",
        Statement: {
          Effect: "Deny",
          Principal: "*",
          Action: "s3:GetObject",
          Resource: `arn:aws:s3:::${scene.bucket}/*`,
          Condition: { StringEquals: { "s3:signatureversion": "AWS" } },
        },
      };
      await scene.must("PUT", "?policy", { body: JSON.stringify(policy) });
      assertError(await sign(scene, "GET", "/key"), 403, "AccessDenied");
      assert.equal((await scene.ask("GET", "/key")).text, "x");
    },
  ],
  [
    "a user may do what its policies allow and nothing else",
    async (scene) => {
      await scene.put("key", "x");
      const Resource = `arn:aws:s3:::${scene.bucket}/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:GetObject", Resource });
      assert.equal((await sign(scene, "GET", "/key", {}, { as })).text, "x");
      assertError(await sign(scene, "DELETE", "/key", {}, { as }), 403, "AccessDenied");
    },
  ],
  [
    "parameters that begin with x- need not be signed",
    async (scene) => {
      await scene.put("key", "hello");
      assert.equal((await present(scene, "GET", "/key", { more: "&x-user=joe" })).text, "hello");
    },
  ],
  [
    "SignatureDoesNotMatch tells what was signed here, but never a customer's key",
    async (scene) => {
      const plain = await sign(scene, "GET", "/key", {}, { contentType: "text/plain" });
      assertError(plain, 403, "SignatureDoesNotMatch");
      assert.match(plain.document.get("StringToSign") ?? "", /^GET\n/);
      const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAxMjM=";
      const headers = { "x-amz-server-side-encryption-customer-key": secret };
      const other = await sign(scene, "GET", "/key", { headers }, { contentType: "text/plain" });
      assertError(other, 403, "SignatureDoesNotMatch");
      assert.ok(!other.text.includes(secret));
    },
  ],
);
