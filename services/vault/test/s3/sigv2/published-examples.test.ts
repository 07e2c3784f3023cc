// Signatures of Version 2 published in the developer guide ("Signing and authenticating REST requests").
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createManualClock } from "@platform/kernel/time";
import { SignatureVerifier, readQuery } from "../../../src/s3/sigv4/index.ts";
import { RequestFields } from "../../../src/s3/wire/fields.ts";

const accessKey = "AKIAIOSFODNN7EXAMPLE";
const secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";

const EXAMPLES = [
  {
    name: "Object GET",
    method: "GET",
    target: "/photos/puppy.jpg",
    headers: { date: "Tue, 27 Mar 2007 19:36:42 +0000" },
    signature: "bWq2s1WEIj+Ydj0vQ697zp+IXMU=",
  },
  {
    name: "Object PUT",
    method: "PUT",
    target: "/photos/puppy.jpg",
    headers: { "content-type": "image/jpeg", date: "Tue, 27 Mar 2007 21:15:45 +0000" },
    signature: "MyyxeRY7whkBe+bq8fHCL/2kKUg=",
  },
  {
    name: "List",
    method: "GET",
    target: "/?prefix=photos&max-keys=50&marker=puppy",
    headers: { date: "Tue, 27 Mar 2007 19:42:41 +0000" },
    signature: "htDYFYduRNen8P9ZfE/s9SuKy0U=",
  },
  {
    name: "Fetch",
    method: "GET",
    target: "/?acl",
    headers: { date: "Tue, 27 Mar 2007 19:44:46 +0000" },
    signature: "c2WLPFtWHVgbEmeEG93a4cG37dM=",
  },
] as const;

function verify(
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
  timeMs: number,
) {
  const verifier = new SignatureVerifier<string>({
    clock: createManualClock(timeMs),
    findKey: (key) => (key === accessKey ? { secret, owner: "root" } : undefined),
  });
  const [rawPath, query = ""] = target.split("?");
  return verifier.verify({
    method,
    rawPath: rawPath!,
    query: readQuery(query),
    fields: new RequestFields(Object.entries(headers)),
    hostedBucket: "johnsmith",
  });
}

describe("a request is accepted with its published signature and with no other", () => {
  for (const { name, method, target, headers, signature } of EXAMPLES) {
    test(name, () => {
      const timeMs = Date.parse(headers.date);
      const authorization = `AWS ${accessKey}:${signature}`;
      const good = verify(method, target, { ...headers, authorization }, timeMs);
      assert.equal(good.kind, "signed");
      const bad = { ...headers, authorization: authorization.replace("=", "A=").slice(0, -2) };
      assert.throws(() => verify(method, target, bad, timeMs), { code: "SignatureDoesNotMatch" });
      const date = new Date(timeMs + 1_000).toUTCString();
      assert.throws(() => verify(method, target, { ...headers, authorization, date }, timeMs), {
        code: "SignatureDoesNotMatch",
      });
    });
  }
});

test("a presigned URL is accepted with its published signature until it expires", () => {
  const target = `/photos/puppy.jpg?AWSAccessKeyId=${accessKey}&Signature=NpgCjnDzrM%2BWFzoENXmpNDUsSn8%3D&Expires=1175139620`;
  const signed = verify("GET", target, {}, 1_175_139_620_000);
  assert.ok(signed.kind === "signed");
  assert.deepEqual(signed.signature, { version: "AWS", type: "REST-QUERY-STRING" });
  assert.throws(() => verify("GET", target, {}, 1_175_139_620_001), { code: "AccessDenied" });
});
