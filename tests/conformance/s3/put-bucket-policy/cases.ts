// PutBucketPolicy, GetBucketPolicy, DeleteBucketPolicy, GetBucketPolicyStatus:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucket-policies.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, createName, readResult, type Scene } from "../case.ts";

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
    "looks at the tags of each object that is deleted with others",
    async (scene) => {
      await scene.put("kept", "x", { "x-amz-tagging": "protect=yes" });
      await scene.put("gone", "x");
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const Condition = { StringEquals: { "s3:ExistingObjectTag/protect": "yes" } };
      await put(scene, { Effect: "Deny", Action: "s3:DeleteObject", Condition });
      assertError(await scene.ask("DELETE", "/kept", { as }), 403, "AccessDenied");
      const items = ["kept", "gone"].map((key) => `<Object><Key>${key}</Key></Object>`);
      const body = `<Delete>${items.join("")}</Delete>`;
      const { document } = await scene.ask("POST", "?delete", { as, body });
      assert.equal(document.get("Error/Key"), "kept");
      assert.equal(document.get("Deleted/Key"), "gone");
    },
  ],
  [
    "looks at the tags of a copy's source, not of its target",
    async (scene) => {
      await scene.put("secret", "x", { "x-amz-tagging": "secret=yes" });
      await scene.put("target", "old");
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const Condition = { StringEquals: { "s3:ExistingObjectTag/secret": "yes" } };
      await put(scene, { Effect: "Deny", Condition });
      const headers = { "x-amz-copy-source": `${scene.bucket}/secret` };
      assertError(await scene.ask("PUT", "/target", { as, headers }), 403, "AccessDenied");
      assert.equal((await scene.ask("GET", "/target")).text, "old");
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
    "looks at tags that a request brings, in a header or a document",
    async (scene) => {
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const Condition = { StringEquals: { "s3:RequestObjectTag/secret": "yes" } };
      const Action = ["s3:PutObject", "s3:PutObjectTagging"];
      await put(scene, { Effect: "Deny", Action, Condition });
      const headers = { "x-amz-tagging": "secret=yes" };
      assertError(await scene.ask("PUT", "/key", { as, headers }), 403, "AccessDenied");
      assertEmpty(await scene.ask("PUT", "/key", { as }), 200);
      const toBody = (value: string) =>
        `<Tagging><TagSet><Tag><Key>secret</Key><Value>${value}</Value></Tag></TagSet></Tagging>`;
      const denied = await scene.ask("PUT", "/key?tagging", { as, body: toBody("yes") });
      assertError(denied, 403, "AccessDenied");
      assertEmpty(await scene.ask("PUT", "/key?tagging", { as, body: toBody("no") }), 200);
    },
  ],
  [
    "looks at where a copy comes from, however the source is written",
    async (scene) => {
      await scene.putAll("open/a", "secret/a");
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const source = `${scene.bucket}/open/*`;
      const Condition = {
        StringNotLike: { "s3:x-amz-copy-source": source },
        Null: { "s3:x-amz-copy-source": "false" },
      };
      await put(scene, { Effect: "Deny", Action: "s3:PutObject", Condition });
      const copy = (from: string) =>
        scene.ask("PUT", "/copy", { as, headers: { "x-amz-copy-source": from } });
      for (const from of ["open/a", "%6fpen%2Fa"]) {
        assert.equal((await copy(`${scene.bucket}/${from}`)).status, 200);
        assert.equal((await copy(`/${scene.bucket}/${from}`)).status, 200);
      }
      assert.equal((await copy(encodeURIComponent(`/${scene.bucket}/open/a`))).status, 200);
      assertError(await copy(`${scene.bucket}/secret/a`), 403, "AccessDenied");
    },
  ],
  [
    "looks at what a copy does with metadata",
    async (scene) => {
      await scene.put("a", "x");
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const Condition = { StringEquals: { "s3:x-amz-metadata-directive": "REPLACE" } };
      await put(scene, { Effect: "Deny", Action: "s3:PutObject", Condition });
      const source = { "x-amz-copy-source": `${scene.bucket}/a` };
      const headers = { ...source, "x-amz-metadata-directive": "REPLACE" };
      assertError(await scene.ask("PUT", "/b", { as, headers }), 403, "AccessDenied");
      assert.equal((await scene.ask("PUT", "/b", { as, headers: source })).status, 200);
    },
  ],
  [
    "looks at grants that a put makes",
    async (scene) => {
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:*", Resource: "*" });
      const Condition = { StringLike: { "s3:x-amz-grant-read": "*AllUsers*" } };
      await put(scene, { Effect: "Deny", Action: "s3:PutObject", Condition });
      const uri = 'uri="http://acs.amazonaws.com/groups/global/AllUsers"';
      const headers = { "x-amz-grant-read": uri };
      assertError(await scene.ask("PUT", "/key", { as, headers }), 403, "AccessDenied");
      assertEmpty(await scene.ask("PUT", "/key", { as }), 200);
    },
  ],
  [
    "lets everyone read and write tags where it says so",
    async (scene) => {
      await scene.put("key", "x", { "x-amz-tagging": "a=1" });
      const body = "<Tagging><TagSet><Tag><Key>b</Key><Value>2</Value></Tag></TagSet></Tagging>";
      assertError(await scene.ask("GET", "/key?tagging", nobody), 403, "AccessDenied");
      assertError(await scene.ask("PUT", "/key?tagging", { ...nobody, body }), 403, "AccessDenied");
      await put(scene, { Action: ["s3:GetObjectTagging", "s3:PutObjectTagging"] });
      assertEmpty(await scene.ask("PUT", "/key?tagging", { ...nobody, body }), 200);
      const { document } = await scene.ask("GET", "/key?tagging", nobody);
      assert.deepEqual(document.texts("TagSet/Tag/Key"), ["b"]);
      assertError(await scene.ask("DELETE", "/key?tagging", nobody), 403, "AccessDenied");
    },
  ],
  [
    "lets everyone upload in parts where everyone may put",
    async (scene) => {
      await put(scene, { Action: "s3:PutObject" });
      const begun = await scene.ask("POST", "/key?uploads", nobody);
      const id = begun.document.get("UploadId");
      const target = `/key?partNumber=1&uploadId=${id}`;
      const part = await scene.ask("PUT", target, { ...nobody, body: "x" });
      const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers["etag"]}</ETag></Part></CompleteMultipartUpload>`;
      const done = await scene.ask("POST", `/key?uploadId=${id}`, { ...nobody, body });
      assert.equal(done.status, 200);
      assert.equal((await scene.ask("GET", "/key")).text, "x");
    },
  ],
  [
    "names users by their ARNs",
    async (scene) => {
      await scene.put("key", "x");
      const as = await scene.createUser();
      const other = await scene.createUser();
      const AWS = `arn:aws:iam::000000000001:user/${as.user}`;
      await put(scene, { Principal: { AWS } });
      assert.equal((await scene.ask("GET", "/key", { as })).text, "x");
      assertError(await scene.ask("GET", "/key", { as: other }), 403, "AccessDenied");
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
    },
  ],
  [
    "NotPrincipal denies all but whom it names",
    async (scene) => {
      await scene.put("key", "x");
      const allow = { Effect: "Allow", Action: "s3:*", Resource: "*" };
      const as = await scene.createUser(allow);
      const other = await scene.createUser(allow);
      const AWS = `arn:aws:iam::000000000001:user/${as.user}`;
      await put(scene, { Effect: "Deny", NotPrincipal: { AWS } });
      assert.equal((await scene.ask("GET", "/key", { as })).text, "x");
      assertError(await scene.ask("GET", "/key", { as: other }), 403, "AccessDenied");
    },
  ],
  [
    "a variable stands for the user's name",
    async (scene) => {
      const as = await scene.createUser();
      const Resource = `arn:aws:s3:::${scene.bucket}/home/\${aws:username}/*`;
      await put(scene, { Action: "s3:PutObject", Resource });
      assertEmpty(await scene.ask("PUT", `/home/${as.user}/a`, { as, body: "x" }), 200);
      assertError(await scene.ask("PUT", "/home/other/a", { as, body: "x" }), 403, "AccessDenied");
    },
  ],
  [
    "NumericLessThanEquals bounds a listing",
    async (scene) => {
      const Resource = `arn:aws:s3:::${scene.bucket}`;
      const Condition = { NumericLessThanEquals: { "s3:max-keys": "10" } };
      await put(scene, { Action: "s3:ListBucket", Resource, Condition });
      assert.equal((await scene.ask("GET", "?max-keys=10", nobody)).status, 200);
      assertError(await scene.ask("GET", "?max-keys=11", nobody), 403, "AccessDenied");
    },
  ],
  [
    "DateLessThan ends a permission",
    async (scene) => {
      await scene.put("key", "x");
      const toCondition = (date: string) => ({ DateLessThan: { "aws:CurrentTime": date } });
      await put(scene, { Condition: toCondition("2000-01-01T00:00:00Z") });
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
      await put(scene, { Condition: toCondition("2999-01-01T00:00:00Z") });
      assert.equal((await scene.ask("GET", "/key", nobody)).text, "x");
    },
  ],
  [
    "tells callers apart by ARN and account, and looks at the age of a signature",
    async (scene) => {
      const [ada, bob] = [await scene.createUser(), await scene.createUser()];
      await scene.put("key", "x");
      const Principal = { AWS: [ada.user, bob.user] };
      const Condition = {
        ArnLike: { "aws:PrincipalArn": `arn:aws:iam::*:user/${ada.user}` },
        StringEquals: { "aws:PrincipalAccount": "000000000001" },
        NumericLessThan: { "s3:signatureAge": "600000" },
      };
      await put(scene, { Principal, Action: "s3:GetObject", Condition });
      assert.equal((await scene.ask("GET", "/key", { as: ada })).status, 200);
      assertError(await scene.ask("GET", "/key", { as: bob }), 403, "AccessDenied");
      const time = new Date(Date.now() - 11 * 60_000);
      assertError(await scene.ask("GET", "/key", { as: ada, time }), 403, "AccessDenied");
    },
  ],
  [
    "Null on s3:if-none-match denies uploads that may overwrite",
    async (scene) => {
      const Condition = { Null: { "s3:if-none-match": "true" } };
      await put(scene, { Effect: "Deny", Action: "s3:PutObject", Condition });
      assertError(await scene.ask("PUT", "/key", { body: "x" }), 403, "AccessDenied");
      const headers = { "if-none-match": "*" };
      assert.equal((await scene.ask("PUT", "/key", { headers, body: "x" })).status, 200);
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
        { Action: "s3:ReadObject" },
        { Action: ["s3:GetObject", "s3:ListBucket"], Resource: `arn:aws:s3:::${scene.bucket}/*` },
        { Action: "s3:GetObject", Resource: `arn:aws:s3:::${scene.bucket}` },
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
      assert.equal(open.get("IsPublic"), "true");
      await put(scene, { Condition: { IpAddress: { "aws:SourceIp": "10.0.0.0/8" } } });
      const narrow = readResult(await scene.ask("GET", "?policyStatus"), "PolicyStatus");
      assert.equal(narrow.get("IsPublic"), "false");
    },
  ],
  [
    "a deny for everyone is not public",
    async (scene) => {
      await put(scene, { Effect: "Deny" });
      const status = (await scene.ask("GET", "?policyStatus")).document;
      assert.equal(status.get("IsPublic"), "false");
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
  [
    "a denial to the account is one to each of its users, an allowance is not",
    async (scene) => {
      await scene.put("key", "x");
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:GetObject", Resource: "*" });
      const none = await scene.createUser();
      for (const AWS of ["arn:aws:iam::000000000001:root", "000000000001"]) {
        await put(scene, { Effect: "Deny", Principal: { AWS } });
        assertError(await scene.ask("GET", "/key", { as }), 403, "AccessDenied");
        await put(scene, { Principal: { AWS } });
        assert.equal((await scene.ask("GET", "/key", { as })).text, "x");
        assertError(await scene.ask("GET", "/key", { as: none }), 403, "AccessDenied");
      }
    },
  ],
  [
    "takes services and identity providers for principals, which nobody here is",
    async (scene) => {
      await scene.put("key", "x");
      const principals = [
        { Service: "logging.s3.amazonaws.com" },
        { Service: ["cloudtrail.amazonaws.com", "delivery.logs.amazonaws.com"] },
        { Federated: "cognito-identity.amazonaws.com" },
      ];
      for (const Principal of principals) {
        assertEmpty(await put(scene, { Principal }), 204);
        assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
        assertEmpty(await put(scene, { Principal, Effect: "Deny" }), 204);
        assert.equal((await scene.ask("GET", "/key")).text, "x");
      }
      assertError(await put(scene, { Principal: {} }), 400, "MalformedPolicy");
    },
  ],
  [
    "takes resources by patterns that the bucket fits, and no others",
    async (scene) => {
      await scene.put("key", "x");
      const { bucket } = scene;
      for (const pattern of ["*", "arn:aws:s3:::*/*", `arn:aws:s3:::${bucket.slice(0, 9)}*/k?y`]) {
        assertEmpty(await put(scene, { Resource: pattern }), 204);
        assert.equal((await scene.ask("GET", "/key", nobody)).text, "x", pattern);
      }
      const bad = ["arn:aws:s3:::c*/*", `arn:aws:s3:::${bucket}x/*`, "arn:aws:s3:::?/*"];
      for (const Resource of bad)
        assertError(await put(scene, { Resource }), 400, "MalformedPolicy");
    },
  ],
  [
    "keys of what no request here has do not apply: networks, organizations, second factors",
    async (scene) => {
      await scene.put("key", "x");
      const isOpen = async (statement: Statement) => {
        assertEmpty(await put(scene, {}, statement), 204);
        return (await scene.ask("GET", "/key", nobody)).status === 200;
      };
      const deny = { Effect: "Deny" };
      const vpce = { "aws:SourceVpce": "vpce-1a2b3c4d" };
      assert.ok(await isOpen({ ...deny, Condition: { StringEquals: vpce } }));
      assert.ok(!(await isOpen({ ...deny, Condition: { StringNotEquals: vpce } })));
      const factor = { "aws:MultiFactorAuthPresent": "false" };
      assert.ok(await isOpen({ ...deny, Condition: { Bool: factor } }));
      assert.ok(!(await isOpen({ ...deny, Condition: { BoolIfExists: factor } })));
      const age = { "aws:MultiFactorAuthAge": true };
      assert.ok(!(await isOpen({ ...deny, Condition: { Null: age } })));
      const organization = { "aws:PrincipalOrgID": "o-1a2b3c" };
      assertEmpty(await put(scene, { Condition: { StringEquals: organization } }), 204);
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
    },
  ],
  [
    "looks at the account and the region of the bucket, and at whether a service calls",
    async (scene) => {
      await scene.put("key", "x");
      const right = {
        StringEquals: {
          "aws:ResourceAccount": "000000000001",
          "s3:ResourceAccount": "000000000001",
          "aws:RequestedRegion": "us-east-1",
        },
        Bool: { "aws:PrincipalIsAWSService": "false", "aws:ViaAWSService": "false" },
      };
      await put(scene, { Condition: right });
      assert.equal((await scene.ask("GET", "/key", nobody)).text, "x");
      const other = { "aws:ResourceAccount": "000000000002" };
      await put(scene, { Condition: { StringEquals: other } });
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
    },
  ],
  [
    "looks at the ownership that a new bucket is to have",
    async (scene) => {
      const { client } = scene;
      const Condition = { StringEquals: { "s3:x-amz-object-ownership": "BucketOwnerEnforced" } };
      const actions = ["s3:CreateBucket", "s3:PutBucketOwnershipControls"];
      const rule = { Effect: "Allow", Action: actions, Resource: "*", Condition };
      const as = await scene.createUser(rule);
      const toTarget = () => `/${createName()}`;
      assertError(await client.send("PUT", toTarget(), { as }), 403, "AccessDenied");
      const headers = { "x-amz-object-ownership": "BucketOwnerEnforced" };
      assertEmpty(await client.send("PUT", toTarget(), { as, headers }), 200);
    },
  ],
  [
    "a variable may have a default, and is a text like others in policies of the older version",
    async (scene) => {
      await scene.put("guest", "x");
      const Resource = `arn:aws:s3:::${scene.bucket}/\${aws:username, 'guest'}`;
      await put(scene, { Resource });
      assert.equal((await scene.ask("GET", "/guest", nobody)).text, "x");
      const older = toPolicy(scene, { Resource }).replace("2012-10-17", "2008-10-17");
      await scene.must("PUT", "?policy", { body: older });
      assertError(await scene.ask("GET", "/guest", nobody), 403, "AccessDenied");
    },
  ],
  [
    "PolicyStatus: broad addresses, patterns and negations leave everyone in",
    async (scene) => {
      const isPublic = async (Condition: object) => {
        assertEmpty(await put(scene, { Condition }), 204);
        return (await scene.must("GET", "?policyStatus")).document.get("IsPublic");
      };
      const broad = [
        { IpAddress: { "aws:SourceIp": "0.0.0.0/1" } },
        { NotIpAddress: { "aws:SourceIp": "10.0.0.0/8" } },
        { StringLike: { "aws:userid": "*" } },
        { StringNotEquals: { "aws:SourceVpc": "vpc-1" } },
        { StringLike: { "aws:Referer": "https://example.com/*" } },
      ];
      for (const Condition of broad)
        assert.equal(await isPublic(Condition), "true", JSON.stringify(Condition));
      const narrow = [
        { IpAddress: { "aws:SourceIp": ["10.0.0.0/8", "2001:db8::/32"] } },
        { StringEquals: { "aws:SourceVpc": "vpc-1" } },
        { StringEquals: { "aws:PrincipalOrgID": "o-1" } },
      ];
      for (const Condition of narrow)
        assert.equal(await isPublic(Condition), "false", JSON.stringify(Condition));
    },
  ],
  [
    "looks at retention and legal hold, in fields and in documents",
    async (scene) => {
      const { client } = scene;
      const locked = await scene.createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
      const deny = (Condition: object) => ({
        Effect: "Deny",
        Principal: "*",
        Action: "s3:*",
        Resource: `arn:aws:s3:::${locked}/*`,
        Condition,
      });
      const body = JSON.stringify({
        Version: "2012-10-17",
        Statement: [
          deny({ NumericGreaterThan: { "s3:object-lock-remaining-retention-days": 10 } }),
          deny({ StringEquals: { "s3:object-lock-mode": "COMPLIANCE" } }),
          deny({ StringEquals: { "s3:object-lock-legal-hold": "ON" } }),
        ],
      });
      assertEmpty(await client.send("PUT", `/${locked}?policy`, { body }), 204);
      const inDays = (days: number) => new Date(Date.now() + days * 86_400_000).toISOString();
      const put = (headers: Record<string, string>) =>
        client.send("PUT", `/${locked}/key`, { body: "x", headers });
      const retain = (mode: string, days: number) => ({
        "x-amz-object-lock-mode": mode,
        "x-amz-object-lock-retain-until-date": inDays(days),
      });
      assertEmpty(await put(retain("GOVERNANCE", 1)), 200);
      assertError(await put(retain("GOVERNANCE", 11)), 403, "AccessDenied");
      assertError(await put(retain("COMPLIANCE", 1)), 403, "AccessDenied");
      assertError(await put({ "x-amz-object-lock-legal-hold": "ON" }), 403, "AccessDenied");
      const change = (mode: string, days: number) =>
        client.send("PUT", `/${locked}/key?retention`, {
          body: `<Retention><Mode>${mode}</Mode><RetainUntilDate>${inDays(days)}</RetainUntilDate></Retention>`,
        });
      assertEmpty(await change("GOVERNANCE", 9), 200);
      assertError(await change("GOVERNANCE", 12), 403, "AccessDenied");
      assertError(await change("COMPLIANCE", 9.5), 403, "AccessDenied");
      const hold = (status: string) =>
        client.send("PUT", `/${locked}/key?legal-hold`, {
          body: `<LegalHold><Status>${status}</Status></LegalHold>`,
        });
      assertError(await hold("ON"), 403, "AccessDenied");
      assertEmpty(await hold("OFF"), 200);
    },
  ],
  [
    "who may list is told which keys are missing, by policy or list; who may not is not",
    async (scene) => {
      const list = { Action: "s3:ListBucket", Resource: `arn:aws:s3:::${scene.bucket}` };
      assertError(await scene.ask("GET", "/missing", nobody), 403, "AccessDenied");
      await put(scene, {});
      assertError(await scene.ask("GET", "/missing", nobody), 403, "AccessDenied");
      await scene.must("PUT", "?acl", { headers: { "x-amz-acl": "public-read" } });
      assertError(await scene.ask("GET", "/missing", nobody), 404, "NoSuchKey");
      await scene.must("DELETE", "?policy");
      assertError(await scene.ask("GET", "/missing", nobody), 404, "NoSuchKey");
      await scene.must("PUT", "?acl", { headers: { "x-amz-acl": "private" } });
      await put(scene, list);
      assertError(await scene.ask("GET", "/missing", nobody), 404, "NoSuchKey");
      assertEmpty(await scene.ask("HEAD", "/missing", nobody), 404);
      await scene.put("key", "x");
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
      await put(scene, list, { Effect: "Deny" });
      assertError(await scene.ask("GET", "/missing", nobody), 403, "AccessDenied");
    },
  ],
  [
    "MalformedPolicy for Allow with NotPrincipal, which would let in everyone else",
    async (scene) => {
      await scene.put("key", "x");
      const AWS = "arn:aws:iam::000000000001:user/nobody";
      const answer = await put(scene, { Effect: "Allow", NotPrincipal: { AWS } });
      assertError(answer, 400, "MalformedPolicy");
      assertError(await scene.ask("GET", "/key", nobody), 403, "AccessDenied");
    },
  ],
);
