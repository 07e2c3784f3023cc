// Signature Version 4 in the Authorization header: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-auth-using-authorization-header.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf } from "../case.ts";

const MINUTE_MS = 60_000;

/** Replaces a part of the Authorization header. */
function rewrite(from: string | RegExp, to: string) {
  return (headers: Record<string, string>): void => {
    headers["authorization"] = headers["authorization"]!.replace(from, to);
  };
}

export const cases = casesOf(
  "Signature Version 4",
  [
    "takes a signature for any region",
    async ({ ask }) => {
      for (const region of ["us-east-1", "eu-west-3", "anything"]) {
        assert.equal((await ask("GET", "", { region })).status, 200);
      }
    },
  ],
  [
    "SignatureDoesNotMatch for another secret",
    async ({ ask, client }) => {
      const as = { ...client.root, secretKey: "another-secret" };
      const answer = await ask("GET", "", { as });
      assertError(answer, 403, "SignatureDoesNotMatch");
      assert.equal(answer.document.get("AWSAccessKeyId"), client.root.accessKey);
      assert.ok(!answer.text.includes(client.root.secretKey));
    },
  ],
  [
    "InvalidAccessKeyId for a key that is not known",
    async ({ ask }) => {
      const as = { accessKey: "AKIANOBODY", secretKey: "secret" };
      const answer = await ask("GET", "", { as });
      assertError(answer, 403, "InvalidAccessKeyId");
      assert.equal(answer.document.get("AWSAccessKeyId"), "AKIANOBODY");
    },
  ],
  [
    "SignatureDoesNotMatch for a signed header that was changed",
    async ({ ask }) => {
      const spoil = (headers: Record<string, string>) => {
        headers["x-amz-meta-a"] = "changed";
      };
      const headers = { "x-amz-meta-a": "signed" };
      assertError(await ask("PUT", "/key", { headers, spoil }), 403, "SignatureDoesNotMatch");
    },
  ],
  [
    "SignatureDoesNotMatch for another path, query or method than was signed",
    async ({ ask, bucket, put }) => {
      await put("a", "x");
      const sent = [
        ["GET", `/${bucket}/b`],
        ["GET", `/${bucket}/a?versionId=null`],
        ["DELETE", `/${bucket}/a`],
      ] as const;
      for (const [method, target] of sent) {
        const answer = await ask("GET", "/a", { sendInstead: { method, target } });
        assert.equal(
          `${answer.status} ${answer.document.get("Code")}`,
          "403 SignatureDoesNotMatch",
        );
      }
    },
  ],
  [
    "AccessDenied for an extension header that is not signed",
    async ({ ask }) => {
      for (const name of ["x-amz-acl", "x-store-acl"]) {
        const spoil = (headers: Record<string, string>) => {
          headers[name] = "public-read";
        };
        assertError(await ask("PUT", "/key", { spoil }), 403, "AccessDenied");
      }
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "takes other headers that are not signed",
    async ({ ask }) => {
      const spoil = (headers: Record<string, string>) => {
        headers["content-type"] = "text/plain";
        headers["user-agent"] = "test";
      };
      assertEmpty(await ask("PUT", "/key", { spoil }), 200);
    },
  ],
  [
    "RequestTimeTooSkewed more than fifteen minutes away, either way",
    async ({ ask }) => {
      for (const minutes of [-16, 16]) {
        const time = new Date(Date.now() + minutes * MINUTE_MS);
        const answer = await ask("GET", "", { time });
        assertError(answer, 403, "RequestTimeTooSkewed");
        assert.ok(answer.document.get("ServerTime") !== undefined);
        assert.equal(answer.document.get("MaxAllowedSkewMilliseconds"), "900000");
      }
    },
  ],
  [
    "takes a time that is fourteen minutes away",
    async ({ ask }) => {
      for (const minutes of [-14, 14]) {
        const time = new Date(Date.now() + minutes * MINUTE_MS);
        assert.equal((await ask("GET", "", { time })).status, 200);
      }
    },
  ],
  [
    "takes Date in place of x-amz-date",
    async ({ ask }) => {
      const time = new Date(Math.floor(Date.now() / 1000) * 1000);
      const headers = { date: time.toUTCString() };
      assert.equal((await ask("GET", "", { time, headers })).status, 200);
    },
  ],
  [
    "AccessDenied without any date, and for one that is none",
    async ({ ask }) => {
      for (const date of [undefined, "yesterday"]) {
        const spoil = (headers: Record<string, string>) => {
          if (date === undefined) delete headers["x-amz-date"];
          else headers["x-amz-date"] = date;
        };
        assertError(await ask("GET", "", { spoil }), 403, "AccessDenied");
      }
    },
  ],
  [
    "InvalidRequest without x-amz-content-sha256",
    async ({ ask }) => {
      const spoil = (headers: Record<string, string>) => {
        delete headers["x-amz-content-sha256"];
      };
      assertError(await ask("GET", "", { spoil }), 400, "InvalidRequest");
    },
  ],
  [
    "refuses an x-amz-content-sha256 that is no hash",
    async ({ ask }) => {
      for (const payload of ["hash", "A".repeat(63), "STREAMING-UNKNOWN"]) {
        const answer = await ask("PUT", "/key", { payload, body: "x" });
        assert.equal(answer.status, 400);
      }
    },
  ],
  [
    "AuthorizationHeaderMalformed for what misses a component",
    async ({ ask }) => {
      for (const part of [/Credential=[^,]*, /, /SignedHeaders=[^,]*, /, /, Signature=.*/]) {
        const answer = await ask("GET", "", { spoil: rewrite(part, "") });
        assertError(answer, 400, "AuthorizationHeaderMalformed");
      }
    },
  ],
  [
    "AuthorizationHeaderMalformed for another service, terminator, date or form of the scope",
    async ({ ask }) => {
      const rewrites = [
        rewrite("/s3/", "/ec2/"),
        rewrite("aws4_request", "aws5_request"),
        rewrite(/\/\d{8}\//, "/20200101/"),
        rewrite(/\/\d{8}\//, "/today/"),
        rewrite(/Credential=[^,]*/, "Credential=key"),
      ];
      for (const spoil of rewrites) {
        assertError(await ask("GET", "", { spoil }), 400, "AuthorizationHeaderMalformed");
      }
    },
  ],
  [
    "takes a Host that was signed without its port, and no other",
    async ({ client, ask }) => {
      const sentHost = (headers: Record<string, string>): void => {
        headers["host"] = client.host;
      };
      const signed = await ask("GET", "", { host: "127.0.0.1", spoil: sentHost });
      assert.equal(signed.status, 200, signed.text);
      for (const host of ["127.0.0.2", "127.0.0.1:1", ""]) {
        const answer = await ask("GET", "", { host, spoil: sentHost });
        assertError(answer, 403, "SignatureDoesNotMatch");
      }
    },
  ],
  [
    "refuses a signature that does not cover the host",
    async ({ ask }) => {
      const answer = await ask("GET", "", { spoil: rewrite("host;", "") });
      assert.ok(answer.status === 400 || answer.status === 403);
    },
  ],
  [
    "InvalidArgument for another kind of authorization",
    async ({ ask }) => {
      for (const authorization of ["Basic dXNlcjpwYXNz", "Bearer token"]) {
        const headers = { authorization };
        assertError(await ask("GET", "", { as: "nobody", headers }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "a field of authorization that is empty is none",
    async ({ ask }) => {
      const answer = await ask("GET", "", { as: "nobody", headers: { authorization: "" } });
      assertError(answer, 403, "AccessDenied");
    },
  ],
  [
    "takes header values with spaces at their ends and in their midst",
    async ({ ask }) => {
      const headers = { "x-amz-meta-a": "  two  spaces  " };
      assertEmpty(await ask("PUT", "/key", { headers }), 200);
    },
  ],
  [
    "takes a query in any order and spelling of its percent signs",
    async ({ ask }) => {
      assert.equal((await ask("GET", "?prefix=a%2fb&list-type=2&delimiter=%2F")).status, 200);
    },
  ],
  [
    "a user may do what its policies allow and nothing else",
    async ({ ask, bucket, createUser, put }) => {
      await put("key", "x");
      const Resource = `arn:aws:s3:::${bucket}/*`;
      const as = await createUser({ Effect: "Allow", Action: "s3:GetObject", Resource });
      assert.equal((await ask("GET", "/key", { as })).text, "x");
      assertError(await ask("PUT", "/key", { as, body: "y" }), 403, "AccessDenied");
      assertError(await ask("DELETE", "/key", { as }), 403, "AccessDenied");
    },
  ],
  [
    "a user without policies may do nothing",
    async ({ ask, client, createUser }) => {
      const as = await createUser();
      assertError(await ask("GET", "", { as }), 403, "AccessDenied");
      assertError(await client.send("GET", "/", { as }), 403, "AccessDenied");
    },
  ],
  [
    "a deny of a user's policy wins over its allow",
    async ({ ask, bucket, createUser, put }) => {
      await put("secret/key", "x");
      const as = await createUser(
        { Effect: "Allow", Action: "s3:*", Resource: "*" },
        { Effect: "Deny", Action: "s3:*", Resource: `arn:aws:s3:::${bucket}/secret/*` },
      );
      assert.equal((await ask("GET", "", { as })).status, 200);
      assertError(await ask("GET", "/secret/key", { as }), 403, "AccessDenied");
    },
  ],
  [
    "SignatureDoesNotMatch tells what was signed here, but never a customer's key",
    async ({ ask, bucket }) => {
      const sendInstead = { method: "GET", target: `/${bucket}/other%20key` };
      const answer = await ask("GET", "/key", { sendInstead });
      assertError(answer, 403, "SignatureDoesNotMatch");
      assert.match(answer.document.get("StringToSign") ?? "", /^AWS4-HMAC-SHA256\n\d{8}T\d{6}Z\n/);
      assert.match(answer.document.get("SignatureProvided") ?? "", /^[0-9a-f]{64}$/);
      const canonical = answer.document.get("CanonicalRequest") ?? "";
      assert.ok(canonical.startsWith(`GET\n/${bucket}/other%20key\n\nhost:`), canonical);
      const secret = "c2VjcmV0LXNlY3JldC1zZWNyZXQtc2VjcmV0LTAxMjM=";
      const headers = { "x-amz-server-side-encryption-customer-key": secret };
      const other = await ask("GET", "/key", { sendInstead, headers });
      assertError(other, 403, "SignatureDoesNotMatch");
      assert.ok(!other.text.includes(secret));
    },
  ],
  [
    "InvalidToken for a token of a session, of which there are none",
    async ({ ask, client, bucket }) => {
      const headers = { "x-amz-security-token": "token" };
      assertError(await ask("GET", "/key", { headers }), 400, "InvalidToken");
      const target = client.presign("GET", `/${bucket}/key?X-Amz-Security-Token=token`);
      assertError(await client.send("GET", target, { as: "nobody" }), 400, "InvalidToken");
      const empty = { "x-amz-security-token": "" };
      assertError(await ask("GET", "/key", { headers: empty }), 404, "NoSuchKey");
    },
  ],
  [
    "AuthorizationHeaderMalformed for the algorithm alone",
    async ({ ask }) => {
      const answer = await ask("GET", "/key", {
        as: "nobody",
        headers: { authorization: "AWS4-HMAC-SHA256" },
      });
      assertError(answer, 400, "AuthorizationHeaderMalformed");
    },
  ],
);
