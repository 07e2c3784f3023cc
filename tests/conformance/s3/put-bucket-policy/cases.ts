// PutBucketPolicy, GetBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";

interface Statement {
  Effect?: string;
  Principal?: unknown;
  Action?: unknown;
  Resource?: unknown;
  Condition?: unknown;
  [name: string]: unknown;
}

function toPolicy({ bucket }: Scene, ...statements: Statement[]): string {
  return JSON.stringify({
    Version: "2012-10-17",
    Statement: statements.map((statement) => ({
      Effect: "Allow",
      ...("NotPrincipal" in statement ? {} : { Principal: "*" }),
      ...("NotAction" in statement ? {} : { Action: "s3:GetObject" }),
      Resource: `arn:aws:s3:::${bucket}/*`,
      ...statement,
    })),
  });
}

function put(scene: Scene, ...statements: Statement[]) {
  return scene.ask("PUT", "?policy", { body: toPolicy(scene, ...statements) });
}

const nobody = { as: "nobody" } as const;

/** The cases. */
export const cases = casesOf(
  "PutBucketPolicy",
  [
    "a bucket without a policy is NoSuchBucketPolicy",
    async ({ ask, bucket }) => {
      const answer = await ask("GET", "?policy");
      assertError(answer, 404, "NoSuchBucketPolicy");
      assert.equal(answer.document.get("BucketName"), bucket);
    },
  ],
  [
    "answers 204 and gives back what was put as JSON",
    async (scene) => {
      assertEmpty(await put(scene, {}), 204);
      const answer = await scene.ask("GET", "?policy");
      assert.equal(answer.headers["content-type"], "application/json");
      assert.deepEqual(JSON.parse(answer.text), JSON.parse(toPolicy(scene, {})));
    },
  ],
  [
    "DELETE removes it and what it allowed",
    async (scene) => {
      await scene.put("key", "x");
      await put(scene, {});
      assert.equal((await scene.ask("GET", "/key", nobody)).text, "x");
      assertEmpty(await scene.ask("DELETE", "?policy"), 204);
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
      assertError(await scene.ask("GET", "?policy"), 404, "NoSuchBucketPolicy");
    },
  ],
  [
    "DELETE is 204 without a policy",
    async ({ ask }) => assertEmpty(await ask("DELETE", "?policy"), 204),
  ],
  [
    "allows everyone what it names and nothing else",
    async (scene) => {
      await scene.put("key", "x");
      await put(scene, {});
      assert.equal((await scene.ask("GET", "/key", nobody)).status, 200);
      assertError(await scene.ask("PUT", "/key", nobody), 403, "AccessDenied");
      assertError(await scene.ask("DELETE", "/key", nobody), 403, "AccessDenied");
      assertError(await scene.ask("GET", "", nobody), 403, "AccessDenied");
    },
  ],
  [
    "allows on the keys that a pattern matches",
    async (scene) => {
      await scene.putAll("open/a", "closed/a");
      await put(scene, { Resource: `arn:aws:s3:::${scene.bucket}/open/*` });
      assert.equal((await scene.ask("GET", "/open/a", nobody)).status, 200);
      assertError(await scene.ask("GET", "/closed/a", nobody), 403, "AccessDenied");
    },
  ],
  [
    "a question mark in a pattern stands for one character",
    async (scene) => {
      await scene.putAll("a1", "a12");
      await put(scene, { Resource: `arn:aws:s3:::${scene.bucket}/a?` });
      assert.equal((await scene.ask("GET", "/a1", nobody)).status, 200);
      assertError(await scene.ask("GET", "/a12", nobody), 403, "AccessDenied");
    },
  ],
  [
    "actions may be lists and patterns",
    async (scene) => {
      await put(scene, { Action: ["s3:Put*", "s3:DeleteObject"] });
      assertEmpty(await scene.ask("PUT", "/key", { ...nobody, body: "x" }), 200);
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
      assertEmpty(await scene.ask("DELETE", "/key", nobody), 204);
    },
  ],
  [
    "takes actions and resources under the names of this store",
    async (scene) => {
      await scene.put("key", "x");
      const Resource = `arn:store:objstore:::${scene.bucket}/*`;
      assertEmpty(await put(scene, { Action: "objstore:GetObject", Resource }), 204);
      assert.equal((await scene.ask("GET", "/key", nobody)).status, 200);
    },
  ],
  [
    "lets everyone list where the bucket is the resource",
    async (scene) => {
      const Resource = `arn:aws:s3:::${scene.bucket}`;
      await put(scene, { Action: "s3:ListBucket", Resource });
      assert.equal((await scene.ask("GET", "", nobody)).status, 200);
    },
  ],
  [
    "a deny wins over an allow of the same policy",
    async (scene) => {
      await scene.putAll("open", "secret");
      const Resource = `arn:aws:s3:::${scene.bucket}/secret`;
      await put(scene, {}, { Effect: "Deny", Resource });
      assert.equal((await scene.ask("GET", "/open", nobody)).status, 200);
      assertError(await scene.ask("GET", "/secret", nobody), 403, "AccessDenied");
    },
  ],
  [
    "a deny wins over an allow of a user's policy",
    async (scene) => {
      await scene.put("key", "x");
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      assert.equal((await scene.ask("GET", "/key", { as })).status, 200);
      await put(scene, { Effect: "Deny" });
      assertError(await scene.ask("GET", "/key", { as }), 403, "AccessDenied");
    },
  ],
  [
    "a deny holds for the root user as well, who can still remove it",
    async (scene) => {
      await scene.put("key", "x");
      const Resource = [`arn:aws:s3:::${scene.bucket}`, `arn:aws:s3:::${scene.bucket}/*`];
      await put(scene, { Effect: "Deny", Action: "s3:*", Resource });
      assertError(await scene.ask("GET", "/key"), 403, "AccessDenied");
      assertEmpty(await scene.ask("DELETE", "?policy"), 204);
      assert.equal((await scene.ask("GET", "/key")).text, "x");
    },
  ],
  [
    "NotAction denies all but what it names",
    async (scene) => {
      await scene.put("key", "x");
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      await put(scene, { Effect: "Deny", NotAction: "s3:GetObject" });
      assert.equal((await scene.ask("GET", "/key", { as })).status, 200);
      assertError(await scene.ask("PUT", "/key", { as }), 403, "AccessDenied");
    },
  ],
  [
    "IpAddress and NotIpAddress look at where a request comes from",
    async (scene) => {
      await scene.put("key", "x");
      const toCondition = (network: string) => ({ IpAddress: { "aws:SourceIp": network } });
      await put(scene, { Condition: toCondition("127.0.0.0/8") });
      assert.equal((await scene.ask("GET", "/key", nobody)).status, 200);
      await put(scene, { Condition: toCondition("10.0.0.0/8") });
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
    },
  ],
  [
    "StringEquals looks at the prefix of a listing",
    async (scene) => {
      await put(scene, {
        Action: "s3:ListBucket",
        Resource: `arn:aws:s3:::${scene.bucket}`,
        Condition: { StringEquals: { "s3:prefix": "open/" } },
      });
      assert.equal((await scene.ask("GET", "?prefix=open/", nobody)).status, 200);
      assertError(await scene.ask("GET", "?prefix=other/", nobody), 403, "AccessDenied");
      assertError(await scene.ask("GET", "", nobody), 403, "AccessDenied");
    },
  ],
  [
    "Bool looks at whether the connection is secure",
    async (scene) => {
      await scene.put("key", "x");
      const Condition = { Bool: { "aws:SecureTransport": "false" } };
      await put(scene, {}, { Effect: "Deny", Condition });
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
    },
  ],
  [
    "StringNotEquals denies uploads without a canned ACL",
    async (scene) => {
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const Condition = { StringNotEquals: { "s3:x-amz-acl": "bucket-owner-full-control" } };
      await put(scene, { Effect: "Deny", Action: "s3:PutObject", Condition });
      assertError(await scene.ask("PUT", "/key", { as }), 403, "AccessDenied");
      const headers = { "x-amz-acl": "bucket-owner-full-control" };
      assertEmpty(await scene.ask("PUT", "/key", { as, headers }), 200);
    },
  ],
  [
    "Null denies uploads without encryption",
    async (scene) => {
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const Condition = { Null: { "s3:x-amz-server-side-encryption": "true" } };
      await put(scene, { Effect: "Deny", Action: "s3:PutObject", Condition });
      assertError(await scene.ask("PUT", "/key", { as }), 403, "AccessDenied");
      const headers = { "x-amz-server-side-encryption": "AES256" };
      assertEmpty(await scene.ask("PUT", "/key", { as, headers }), 200);
    },
  ],
  [
    "looks at tags that an object has",
    async (scene) => {
      await scene.put("open", "x", { "x-amz-tagging": "access=public" });
      await scene.put("closed", "x");
      const Condition = { StringEquals: { "s3:ExistingObjectTag/access": "public" } };
      await put(scene, { Condition });
      assert.equal((await scene.ask("GET", "/open", nobody)).status, 200);
      assertError(await scene.ask("GET", "/closed", nobody), 403, "AccessDenied");
    },
  ],
  [
    "StringLike looks at the referer",
    async (scene) => {
      await scene.put("key", "x");
      await put(scene, { Condition: { StringLike: { "aws:Referer": "https://example.com/*" } } });
      const headers = { referer: "https://example.com/page" };
      assert.equal((await scene.ask("GET", "/key", { ...nobody, headers })).status, 200);
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
    },
  ],
  [
    "MalformedPolicy for what is no policy, and keeps the one before",
    async (scene) => {
      await put(scene, {});
      for (const body of ["", "hello", "[]", "{}", '{"Version":"2012-10-17"}']) {
        assertError(await scene.ask("PUT", "?policy", { body }), 400, "MalformedPolicy");
      }
      assert.equal((await scene.ask("GET", "?policy")).status, 200);
    },
  ],
  [
    "MalformedPolicy for effects, actions, resources and principals that are none",
    async (scene) => {
      const bad: Statement[] = [
        { Effect: "Maybe" },
        { Action: "ec2:RunInstances" },
        { Action: [] },
        { Resource: "arn:aws:s3:::another-bucket/*" },
        { Principal: { Service: 1 } },
        { Principal: undefined },
        { Unknown: "x" },
      ];
      for (const statement of bad) {
        assertError(await put(scene, statement), 400, "MalformedPolicy");
      }
    },
  ],
  [
    "MalformedPolicy for conditions that are not known: they are never ignored",
    async (scene) => {
      const bad = [
        { StringEqual: { "s3:prefix": "a" } },
        { StringEquals: { "aws:MadeUp": "a" } },
        { IpAddress: { "aws:SourceIp": "300.1.1.1" } },
        "text",
      ];
      for (const Condition of bad) {
        assertError(await put(scene, { Condition }), 400, "MalformedPolicy");
      }
    },
  ],
  [
    "refuses a policy above 20 KiB",
    async (scene) => {
      const answer = await put(scene, { Sid: "x".repeat(21_000) });
      assert.equal(answer.status, 400);
    },
  ],
  [
    "PolicyStatus tells whether everyone is let in",
    async (scene) => {
      assertError(await scene.ask("GET", "?policyStatus"), 404, "NoSuchBucketPolicy");
      await put(scene, {});
      const open = readResult(await scene.ask("GET", "?policyStatus"), "PolicyStatus");
      assert.equal(open.get("IsPublic")!.toLowerCase(), "true");
      await put(scene, { Condition: { IpAddress: { "aws:SourceIp": "10.0.0.0/8" } } });
      const narrow = readResult(await scene.ask("GET", "?policyStatus"), "PolicyStatus");
      assert.equal(narrow.get("IsPublic")!.toLowerCase(), "false");
    },
  ],
  [
    "a deny for everyone is not public",
    async (scene) => {
      await put(scene, { Effect: "Deny" });
      const status = (await scene.ask("GET", "?policyStatus")).document;
      assert.equal(status.get("IsPublic")!.toLowerCase(), "false");
    },
  ],
  [
    "AccessDenied without a signature, whatever the policy allows on objects",
    async (scene) => {
      await put(scene, { Action: "s3:*" });
      assertError(await scene.ask("GET", "?policy", nobody), 403, "AccessDenied");
      assertError(await scene.ask("DELETE", "?policy", nobody), 403, "AccessDenied");
    },
  ],
);
