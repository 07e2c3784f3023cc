// Request headers that change the meaning of a request, and those that must not.
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf } from "../case.ts";

export const cases = casesOf(
  "Header fields",
  [
    "NotImplemented for a put that would append, and the object stays",
    async ({ ask, put }) => {
      await put("key", "whole");
      const headers = { "x-amz-write-offset-bytes": "5" };
      assertError(await ask("PUT", "/key", { headers, body: "more" }), 501, "NotImplemented");
      assert.equal((await ask("GET", "/key")).text, "whole");
    },
  ],
  [
    "fields that SDKs send about themselves mean nothing",
    async ({ ask }) => {
      const headers = {
        "amz-sdk-invocation-id": "a",
        "amz-sdk-request": "attempt=1; max=3",
        "x-amz-user-agent": "aws-sdk-js/3",
        "x-amz-request-payer": "requester",
      };
      assertEmpty(await ask("PUT", "/key", { headers, body: "x" }), 200);
    },
  ],
  [
    "a type of content is kept as it came, charset and all",
    async ({ ask, put }) => {
      await put("key", "x", { "content-type": 'text/plain;charset="UTF-8"; a=b' });
      const { headers } = await ask("HEAD", "/key");
      assert.equal(headers["content-type"], 'text/plain;charset="UTF-8"; a=b');
    },
  ],
  [
    "several codings of content are kept as they came",
    async ({ ask, put }) => {
      await put("key", "x", { "content-encoding": "gzip, br" });
      assert.equal((await ask("HEAD", "/key")).headers["content-encoding"], "gzip, br");
    },
  ],
  [
    "bytes of UTF-8 in metadata are signed, kept and answered as they came",
    async ({ ask, put }) => {
      const value = Buffer.from("grün ☃").toString("latin1");
      await put("key", "x", { "x-amz-meta-a": value });
      assert.equal((await ask("HEAD", "/key")).headers["x-amz-meta-a"], value);
    },
  ],
  [
    "an answer says how long it is, or that it is in chunks, never both",
    async ({ ask, put }) => {
      await put("key", Buffer.alloc(100_000));
      for (const target of ["/key", "", "/missing", "?policy"]) {
        const { headers } = await ask("GET", target);
        assert.notEqual(
          headers["content-length"] === undefined,
          headers["transfer-encoding"] === undefined,
        );
      }
    },
  ],
  [
    "a website's redirection must be a path or an address",
    async ({ ask }) => {
      for (const value of ["somewhere", "ftp://example.com/", "javascript:alert(1)"]) {
        const headers = { "x-amz-website-redirect-location": value };
        assertError(await ask("PUT", "/key", { headers }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "a GET with a body is answered as one without",
    async ({ ask, put }) => {
      await put("key", "x");
      assert.equal((await ask("GET", "/key", { body: "ignored" })).text, "x");
    },
  ],
  [
    "a DELETE with a body is answered as one without",
    async ({ ask, put }) => {
      await put("key", "x");
      assertEmpty(await ask("DELETE", "/key", { body: "ignored" }), 204);
    },
  ],
  [
    "a length that is none is 400",
    async ({ client, bucket }) => {
      for (const length of ["-1", "x", "1 2"]) {
        const target = client.presign("PUT", `/${bucket}/key`);
        const answer = await client.sendRaw(
          `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nContent-Length: ${length}\r\nConnection: close\r\n\r\n`,
        );
        assert.match(answer, /^HTTP\/1.1 400 /);
      }
    },
  ],
  [
    "a put without any length is MissingContentLength",
    async ({ client, bucket }) => {
      const target = client.presign("PUT", `/${bucket}/key`);
      const answer = await client.sendRaw(
        `PUT ${target} HTTP/1.1\r\nHost: ${client.host}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n0\r\n\r\n`,
      );
      assert.match(answer, /^HTTP\/1.1 411 [\s\S]*MissingContentLength/);
    },
  ],
  [
    "every answer names its request and who answered, errors in the document as well",
    async ({ ask }) => {
      const good = await ask("GET");
      assert.ok(good.headers["x-amz-id-2"]);
      const bad = await ask("GET", "/missing");
      assert.equal(bad.headers["x-amz-id-2"], bad.document.get("HostId"));
    },
  ],
  [
    "metadata may be many short fields; answers stay within a hundred lines where they can",
    async ({ ask, put }) => {
      const toMetadata = (count: number) =>
        Object.fromEntries(Array.from({ length: count }, (_, at) => [`x-amz-meta-k${at}`, "v"]));
      await put("key", "", toMetadata(300));
      const { headers } = await ask("HEAD", "/key");
      assert.equal(headers["x-amz-meta-k299"], "v");
      await put("key", "", toMetadata(75));
      const fewer = await ask("HEAD", "/key");
      assert.equal(fewer.headers["x-amz-meta-k74"], "v");
      assert.ok(fewer.rawNames.length <= 100, `${fewer.rawNames.length} lines`);
      assert.notEqual(fewer.headers["x-store-request-id"], undefined);
    },
  ],
);
