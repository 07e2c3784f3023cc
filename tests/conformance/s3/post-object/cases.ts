// POST Object: https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-UsingHTTPPOST.html
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { assertEmpty, assertError, casesOf, digest, md5, type Scene } from "../case.ts";
import { assertKey, BUCKET_KEY, changeKey, CONTEXT, createKey, KEY_ID, SSE } from "../named-key.ts";
import { signPolicy, type Credentials } from "../signature.ts";

const BOUNDARY = "----boundary7MA4YWxk";
const HOUR_MS = 3_600_000;

interface Form {
  /** Fields in order; those of the signed policy are added if there are `conditions`. */
  fields?: Record<string, string>;
  conditions?: readonly unknown[];
  expiration?: string;
  policy?: object | string;
  secretKey?: string;
  /** The signing user; default: the root user. */
  as?: Credentials;
  file?: string | undefined;
  fileName?: string;
  fileType?: string;
  /** Parts after the file. */
  after?: Record<string, string>;
}

function toPart(name: string, value: string): string {
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
}

function toBody(
  { file, fileName = "file.txt", fileType, after = {} }: Form,
  fields: object,
): string {
  const parts = Object.entries(fields).map(([name, value]) => toPart(name, String(value)));
  if (file !== undefined) {
    const type = fileType === undefined ? "" : `\r\nContent-Type: ${fileType}`;
    parts.push(
      `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${fileName}"${type}\r\n\r\n${file}\r\n`,
    );
  }
  for (const [name, value] of Object.entries(after)) parts.push(toPart(name, value));
  return `${parts.join("")}--${BOUNDARY}--\r\n`;
}

/** Posts a form like a browser, with only the policy's signature. */
function post(scene: Scene, given: Form) {
  const { client, bucket, ask } = scene;
  const form = { file: "hello", ...given };
  const fields = { key: "key", ...form.fields };
  const expiration = form.expiration ?? new Date(Date.now() + HOUR_MS).toISOString();
  const isSigned = form.conditions !== undefined || form.policy !== undefined;
  const signer = form.as ?? client.root;
  const credentials = { ...signer, secretKey: form.secretKey ?? signer.secretKey };
  const now = new Date();
  const unsigned = signPolicy("", credentials, now, "us-east-1");
  const policy = form.policy ?? {
    expiration,
    conditions: [
      { bucket },
      { "x-amz-algorithm": unsigned["x-amz-algorithm"] },
      { "x-amz-credential": unsigned["x-amz-credential"] },
      { "x-amz-date": unsigned["x-amz-date"] },
      ...(form.conditions ?? []),
    ],
  };
  const signed = isSigned ? signPolicy(policy, credentials, now, "us-east-1") : {};
  return ask("POST", "", {
    as: "nobody",
    headers: { "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
    body: toBody(form, { ...fields, ...signed }),
  });
}

const ANY_KEY = ["starts-with", "$key", ""];

export const cases = casesOf(
  "POST Object",
  [
    "stores the file and answers 204 with ETag and Location",
    async (scene) => {
      const answer = await post(scene, { conditions: [ANY_KEY] });
      assertEmpty(answer, 204);
      assert.equal(answer.headers["etag"], `"${md5("hello")}"`);
      assert.equal(answer.headers["location"], `http://${scene.client.host}/${scene.bucket}/key`);
      assert.equal((await scene.ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "success_action_status of 201 answers a document",
    async (scene) => {
      const answer = await post(scene, {
        fields: { key: "a b", success_action_status: "201" },
        conditions: [ANY_KEY, { success_action_status: "201" }],
      });
      assert.equal(answer.status, 201, answer.text);
      const { document } = answer;
      assert.equal(document.name, "PostResponse");
      assert.equal(document.get("Bucket"), scene.bucket);
      assert.equal(document.get("Key"), "a b");
      assert.equal(document.get("ETag"), `"${md5("hello")}"`);
      assert.equal(document.get("Location"), `http://${scene.client.host}/${scene.bucket}/a%20b`);
    },
  ],
  [
    "success_action_status of 200 answers 200, any other 204",
    async (scene) => {
      for (const [asked, status] of [
        ["200", 200],
        ["404", 204],
        ["", 204],
      ] as const) {
        const answer = await post(scene, {
          fields: { success_action_status: asked },
          conditions: [ANY_KEY, ["starts-with", "$success_action_status", ""]],
        });
        assertEmpty(answer, status);
      }
    },
  ],
  [
    "success_action_redirect answers 303 with bucket, key and ETag",
    async (scene) => {
      const target = "https://app.example/done?a=1";
      const answer = await post(scene, {
        fields: { success_action_redirect: target },
        conditions: [ANY_KEY, { success_action_redirect: target }],
      });
      assert.equal(answer.status, 303);
      const url = new URL(answer.headers["location"]!);
      assert.equal(url.origin + url.pathname, "https://app.example/done");
      assert.equal(url.searchParams.get("a"), "1");
      assert.equal(url.searchParams.get("bucket"), scene.bucket);
      assert.equal(url.searchParams.get("key"), "key");
      assert.equal(url.searchParams.get("etag"), `"${md5("hello")}"`);
    },
  ],
  [
    "${filename} in the key is the file's name",
    async (scene) => {
      const fields = { key: "uploads/${filename}" };
      assertEmpty(await post(scene, { fields, fileName: "a b.txt", conditions: [ANY_KEY] }), 204);
      assert.equal((await scene.ask("GET", "/uploads/a%20b.txt")).text, "hello");
    },
  ],
  [
    "keeps type, metadata, tags and ACL of the form",
    async (scene) => {
      const answer = await post(scene, {
        fields: {
          "Content-Type": "text/css",
          "Cache-Control": "no-store",
          "x-amz-meta-a": "1",
          acl: "public-read",
          tagging: "<Tagging><TagSet><Tag><Key>t</Key><Value>1</Value></Tag></TagSet></Tagging>",
        },
        conditions: [
          ANY_KEY,
          { "Content-Type": "text/css" },
          { "Cache-Control": "no-store" },
          { "x-amz-meta-a": "1" },
          { acl: "public-read" },
          ["starts-with", "$tagging", ""],
        ],
      });
      assertEmpty(answer, 204);
      const got = await scene.ask("GET", "/key", { as: "nobody" });
      assert.equal(got.headers["content-type"], "text/css");
      assert.equal(got.headers["cache-control"], "no-store");
      assert.equal(got.headers["x-amz-meta-a"], "1");
      assert.equal(got.headers["x-amz-tagging-count"], "1");
    },
  ],
  [
    "metadata that no header can hold does not make the object unreadable",
    async (scene) => {
      const answer = await post(scene, {
        fields: { "x-amz-meta-a": "snow ☃\u0001" },
        conditions: [ANY_KEY, ["starts-with", "$x-amz-meta-a", ""]],
      });
      if (answer.status === 204) {
        assert.equal((await scene.ask("GET", "/key")).text, "hello");
      } else {
        assert.equal(answer.status, 400);
      }
    },
  ],
  [
    "AccessDenied for a policy that has expired",
    async (scene) => {
      const expiration = new Date(Date.now() - HOUR_MS).toISOString();
      const answer = await post(scene, { conditions: [ANY_KEY], expiration });
      assertError(answer, 403, "AccessDenied");
      assert.match(answer.document.get("Message")!, /expired/i);
    },
  ],
  [
    "AccessDenied for a value that a condition does not allow",
    async (scene) => {
      const conditions = [["starts-with", "$key", "user/"]];
      assertError(await post(scene, { conditions }), 403, "AccessDenied");
      const eq = [["eq", "$key", "other"]];
      assertError(await post(scene, { conditions: eq }), 403, "AccessDenied");
      assert.equal((await scene.ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "AccessDenied for a field that no condition speaks of",
    async (scene) => {
      const fields = { "x-amz-meta-a": "1" };
      assertError(await post(scene, { fields, conditions: [ANY_KEY] }), 403, "AccessDenied");
    },
  ],
  [
    "takes fields that begin with x-ignore- without a condition",
    async (scene) => {
      const fields = { "x-ignore-a": "1" };
      assertEmpty(await post(scene, { fields, conditions: [ANY_KEY] }), 204);
    },
  ],
  [
    "takes names of fields in any case",
    async (scene) => {
      const fields = { "conTENT-tYPE": "text/css" };
      const conditions = [ANY_KEY, ["starts-with", "$content-TYPE", "text/"]];
      assertEmpty(await post(scene, { fields, conditions }), 204);
      assert.equal((await scene.ask("HEAD", "/key")).headers["content-type"], "text/css");
    },
  ],
  [
    "EntityTooLarge and EntityTooSmall outside content-length-range, both ends included",
    async (scene) => {
      const toRange = (min: number, max: number) => [ANY_KEY, ["content-length-range", min, max]];
      assertError(await post(scene, { conditions: toRange(0, 4) }), 400, "EntityTooLarge");
      assertError(await post(scene, { conditions: toRange(6, 9) }), 400, "EntityTooSmall");
      assert.equal((await scene.ask("HEAD", "/key")).status, 404);
      assertEmpty(await post(scene, { conditions: toRange(5, 5) }), 204);
    },
  ],
  [
    "AccessDenied for a policy of another bucket",
    async (scene) => {
      const conditions = [ANY_KEY, { bucket: "another" }];
      assertError(await post(scene, { conditions }), 403, "AccessDenied");
    },
  ],
  [
    "AccessDenied for a condition on a field that the form does not have",
    async (scene) => {
      const conditions = [ANY_KEY, { "x-amz-meta-a": "1" }];
      assertError(await post(scene, { conditions }), 403, "AccessDenied");
    },
  ],
  [
    "InvalidPolicyDocument for conditions that are none, and names in another case",
    async (scene) => {
      const expiration = new Date(Date.now() + HOUR_MS).toISOString();
      const bad = [
        { expiration, conditions: [["content-length-range", 0]] },
        { expiration, conditions: [["content-length-range", -1, 0]] },
        { expiration, conditions: [["matches", "$key", ".*"]] },
        { expiration, conditions: ["key"] },
        { expiration, CONDITIONS: [] },
        { EXPIRATION: expiration, conditions: [] },
        { expiration },
      ];
      for (const policy of bad) {
        assertError(await post(scene, { policy }), 400, "InvalidPolicyDocument");
      }
    },
  ],
  [
    "asks the policies of who signed the form",
    async (scene) => {
      const Resource = `arn:aws:s3:::${scene.bucket}/open/*`;
      const as = await scene.createUser({ Effect: "Allow", Action: "s3:PutObject", Resource });
      const toForm = (key: string) => ({ as, fields: { key }, conditions: [ANY_KEY] });
      assertEmpty(await post(scene, toForm("open/a")), 204);
      assertError(await post(scene, toForm("closed/a")), 403, "AccessDenied");
    },
  ],
  [
    "SignatureDoesNotMatch for another secret",
    async (scene) => {
      const answer = await post(scene, { conditions: [ANY_KEY], secretKey: "another" });
      assertError(answer, 403, "SignatureDoesNotMatch");
    },
  ],
  [
    "InvalidPolicyDocument for what is no policy",
    async (scene) => {
      const bad = ["hello", "{}", { expiration: "x", conditions: [] }, { conditions: [] }];
      for (const policy of bad) {
        assertError(await post(scene, { policy }), 400, "InvalidPolicyDocument");
      }
    },
  ],
  [
    "InvalidArgument for a policy without its signature",
    async (scene) => {
      const fields = { policy: Buffer.from("{}").toString("base64") };
      assertError(await post(scene, { fields }), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidArgument without a key",
    async (scene) => {
      const answer = await post(scene, { fields: { key: "" }, conditions: [] });
      assertError(answer, 400, "InvalidArgument");
    },
  ],
  [
    "refuses a form without a file",
    async (scene) => {
      const answer = await post(scene, { conditions: [ANY_KEY], file: undefined });
      assert.equal(answer.status, 400);
      assert.equal((await scene.ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "stores an empty file",
    async (scene) => {
      assertEmpty(await post(scene, { conditions: [ANY_KEY], file: "" }), 204);
      assert.equal((await scene.ask("HEAD", "/key")).headers["content-length"], "0");
    },
  ],
  [
    "keeps what looks like a boundary within the file",
    async (scene) => {
      const file = `a\r\n--${BOUNDARY.slice(0, -1)}\r\n\r\nb\r\n`;
      assertEmpty(await post(scene, { conditions: [ANY_KEY], file }), 204);
      assert.equal((await scene.ask("GET", "/key")).text, file);
    },
  ],
  [
    "ignores fields behind the file",
    async (scene) => {
      const after = { "x-amz-meta-late": "1" };
      assertEmpty(await post(scene, { conditions: [ANY_KEY], after }), 204);
      assert.equal((await scene.ask("HEAD", "/key")).headers["x-amz-meta-late"], undefined);
    },
  ],
  [
    "AccessDenied for a form without a policy where not everyone may put",
    async (scene) => assertError(await post(scene, {}), 403, "AccessDenied"),
  ],
  [
    "takes a form without a policy where everyone may put",
    async (scene) => {
      await scene.must("PUT", "?acl", { headers: { "x-amz-acl": "public-read-write" } });
      assertEmpty(await post(scene, {}), 204);
      assert.equal((await scene.ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "MalformedPOSTRequest for a body that is no form",
    async ({ ask }) => {
      const headers = { "content-type": `multipart/form-data; boundary=${BOUNDARY}` };
      const answer = await ask("POST", "", { as: "nobody", headers, body: "hello" });
      assertError(answer, 400, "MalformedPOSTRequest");
    },
  ],
  [
    "PreconditionFailed for another type than a form's",
    async ({ ask }) => {
      const headers = { "content-type": "application/json" };
      const answer = await ask("POST", "", { as: "nobody", headers, body: "{}" });
      assertError(answer, 412, "PreconditionFailed");
      assert.equal(
        answer.document.get("Condition"),
        "Bucket POST must be of the enclosure-type multipart/form-data",
      );
    },
  ],
  [
    "NoSuchBucket where the bucket is not there",
    async ({ client, bucket }) => {
      const answer = await client.send("POST", `/${bucket}-not`, {
        as: "nobody",
        headers: { "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
        body: toBody({ file: "x" }, { key: "key" }),
      });
      assertError(answer, 404, "NoSuchBucket");
    },
  ],
  [
    "takes a policy that is signed with Signature Version 2, and refuses another's",
    async (scene) => {
      const { accessKey, secretKey } = scene.client.root;
      const document = {
        expiration: new Date(Date.now() + HOUR_MS).toISOString(),
        conditions: [{ bucket: scene.bucket }, ["starts-with", "$key", "older"]],
      };
      const policy = Buffer.from(JSON.stringify(document)).toString("base64");
      const signature = createHmac("sha1", secretKey).update(policy).digest("base64");
      const fields = { key: "older", AWSAccessKeyId: accessKey, policy, signature };
      assertEmpty(await post(scene, { fields }), 204);
      assert.equal((await scene.ask("GET", "/older")).text, "hello");
      const forged = { ...fields, signature: signature.replace(/^./, "_") };
      assertError(await post(scene, { fields: forged }), 403, "SignatureDoesNotMatch");
      const other = await post(scene, { fields: { ...fields, key: "newer" } });
      assertError(other, 403, "AccessDenied");
      const { signature: _, ...unsigned } = fields;
      assertError(await post(scene, { fields: unsigned }), 400, "InvalidArgument");
    },
  ],
  [
    "checks checksums and the MD5 that come as fields",
    async (scene) => {
      const names = ["x-amz-checksum-sha256", "content-md5"] as const;
      const algorithms = ["sha256", "md5"] as const;
      for (const [index, name] of names.entries()) {
        const conditions = [ANY_KEY, ["starts-with", `$${name}`, ""]];
        const sum = (text: string) => digest(algorithms[index]!, text);
        const good = { key: `good-${name}`, [name]: sum("hello") };
        assertEmpty(await post(scene, { fields: good, conditions }), 204);
        const bad = { key: `bad-${name}`, [name]: sum("other") };
        assertError(await post(scene, { fields: bad, conditions }), 400, "BadDigest");
        assert.equal((await scene.ask("HEAD", `/bad-${name}`)).status, 404);
      }
      const mode = { headers: { "x-amz-checksum-mode": "ENABLED" } };
      const head = await scene.ask("HEAD", "/good-x-amz-checksum-sha256", mode);
      assert.equal(head.headers["x-amz-checksum-sha256"], digest("sha256", "hello"));
    },
  ],
  [
    "InvalidPolicyDocument for a condition without a property, and for one with two",
    async (scene) => {
      for (const condition of [{}, { key: "key", acl: "private" }]) {
        const answer = await post(scene, { conditions: [ANY_KEY, condition] });
        assertError(answer, 400, "InvalidPolicyDocument");
      }
    },
  ],
  [
    "takes operators and fields of conditions in any case",
    async (scene) => {
      const conditions = [["StArTs-WiTh", "$KeY", "ke"]];
      assertEmpty(await post(scene, { conditions }), 204);
    },
  ],
  [
    "AccessDenied for a policy that does not name the bucket",
    async (scene) => {
      const expiration = new Date(Date.now() + HOUR_MS).toISOString();
      const conditions = [ANY_KEY, ["starts-with", "$x-amz-algorithm", ""]];
      conditions.push(["starts-with", "$x-amz-credential", ""], ["starts-with", "$x-amz-date", ""]);
      const answer = await post(scene, { policy: { expiration, conditions } });
      assertError(answer, 403, "AccessDenied");
    },
  ],
  [
    "InvalidPolicyDocument for an expiration that is not written as ISO 8601 has it",
    async (scene) => {
      const expiration = "2999-01-01 00:00:00";
      const answer = await post(scene, { expiration, conditions: [ANY_KEY] });
      assertError(answer, 400, "InvalidPolicyDocument");
    },
  ],
  [
    "who may write by the bucket's list may give lists and tags along, without a policy",
    async (scene) => {
      await scene.must("PUT", "?acl", { headers: { "x-amz-acl": "public-read-write" } });
      const tagging = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>";
      const fields = { key: "key", acl: "public-read", tagging };
      assertEmpty(await post(scene, { fields }), 204);
      assert.equal((await scene.ask("GET", "/key", { as: "nobody" })).text, "hello");
      assert.equal((await scene.ask("HEAD", "/key")).headers["x-amz-tagging-count"], "1");
    },
  ],
  [
    "${filename} is the file's name without the path that a client puts before it",
    async (scene) => {
      for (const fileName of ["/home/me/a.txt", "C:\\pictures\\a.txt", "C:\\\\pictures\\\\a.txt"]) {
        const answer = await post(scene, {
          fields: { key: "up/${filename}" },
          conditions: [ANY_KEY],
          fileName,
        });
        const location = `http://${scene.client.host}/${scene.bucket}/up/a.txt`;
        assert.equal(answer.headers["location"], location);
      }
    },
  ],
  [
    "answers encryption and checksum as a PUT does",
    async (scene) => {
      const sum = digest("sha256", "hello");
      const { headers } = await post(scene, {
        fields: { "x-amz-server-side-encryption": "AES256", "x-amz-checksum-sha256": sum },
        conditions: [
          ANY_KEY,
          { "x-amz-server-side-encryption": "AES256" },
          { "x-amz-checksum-sha256": sum },
        ],
      });
      assert.equal(headers["x-amz-server-side-encryption"], "AES256");
      assert.equal(headers["x-amz-checksum-sha256"], sum);
    },
  ],
  [
    "encrypts with the named key of its fields, in the forms that the policy allows",
    async (scene) => {
      const key = await createKey(scene);
      const other = await createKey(scene);
      const context = Buffer.from('{"a":"b"}').toString("base64");
      const conditions = [
        ANY_KEY,
        { [SSE]: "aws:kms" },
        ["starts-with", `$${KEY_ID}`, key.arn.slice(0, -3)],
        ["starts-with", `$${CONTEXT}`, ""],
        { [BUCKET_KEY]: "true" },
      ];
      const fields = {
        [SSE]: "aws:kms",
        [KEY_ID]: key.arn,
        [CONTEXT]: context,
        [BUCKET_KEY]: "true",
      };
      const answer = await post(scene, { fields, conditions });
      assertEmpty(answer, 204);
      assertKey(answer, key);
      assert.equal(answer.headers[CONTEXT], context);
      const head = await scene.ask("HEAD", "/key");
      assertKey(head, key);
      assert.equal(head.headers[BUCKET_KEY], "true");
      for (const refused of [
        { [KEY_ID]: other.arn },
        { [SSE]: "AES256" },
        { [BUCKET_KEY]: "false" },
      ])
        assertError(
          await post(scene, { fields: { ...fields, ...refused }, conditions }),
          403,
          "AccessDenied",
        );
      const [, , ...narrow] = conditions;
      assertError(await post(scene, { fields, conditions: narrow }), 403, "AccessDenied");
    },
  ],
  [
    "has the errors of a PUT for named keys: unknown, disabled, or denied to the signer",
    async (scene) => {
      const key = await createKey(scene);
      const ask = (id: string, as?: Credentials) =>
        post(scene, {
          fields: { [SSE]: "aws:kms", [KEY_ID]: id },
          conditions: [ANY_KEY, { [SSE]: "aws:kms" }, { [KEY_ID]: id }],
          ...(as === undefined ? {} : { as }),
        });
      assertError(await ask("alias/nobody"), 400, "KMS.NotFoundException");
      await changeKey(scene, key, "disable");
      assertError(await ask(key.id), 400, "KMS.DisabledException");
      await changeKey(scene, key, "enable");
      const user = await scene.createUser(
        { Effect: "Allow", Action: "s3:PutObject", Resource: `arn:aws:s3:::${scene.bucket}/*` },
        { Effect: "Deny", Action: "kms:GenerateDataKey", Resource: key.arn },
      );
      assertError(await ask(key.id, user), 403, "AccessDenied");
      assert.equal((await scene.ask("GET", "/key")).status, 404);
    },
  ],
  [
    "InvalidArgument for a named key in a form with a signature of version 2",
    async (scene) => {
      const { accessKey, secretKey } = scene.client.root;
      const expiration = new Date(Date.now() + HOUR_MS).toISOString();
      const conditions = [{ bucket: scene.bucket }, ANY_KEY, { [SSE]: "aws:kms" }];
      const policy = Buffer.from(JSON.stringify({ expiration, conditions })).toString("base64");
      const signature = createHmac("sha1", secretKey).update(policy).digest("base64");
      const answer = await post(scene, {
        fields: { [SSE]: "aws:kms", AWSAccessKeyId: accessKey, policy, signature },
      });
      assertError(answer, 400, "InvalidArgument");
      assert.equal((await scene.ask("GET", "/key")).status, 404);
    },
  ],
  [
    "stores a large file as it comes, byte for byte",
    async (scene) => {
      const file = "0123456789abcdef".repeat(1_500_000);
      const answer = await post(scene, {
        conditions: [ANY_KEY, ["content-length-range", file.length, file.length]],
        file,
      });
      assertEmpty(answer, 204);
      assert.equal(answer.headers["etag"], `"${md5(file)}"`);
      assert.equal(md5((await scene.ask("GET", "/key")).body), md5(file));
    },
  ],
  [
    "refuses a large file that is too large, is no last part, or is another than its digest says, and stores nothing",
    async (scene) => {
      const file = "0123456789abcdef".repeat(1_100_000);
      const range = (max: number) => [ANY_KEY, ["content-length-range", 0, max]];
      const large = await post(scene, { conditions: range(file.length - 1), file });
      assertError(large, 400, "EntityTooLarge");
      const followed = await post(scene, { conditions: [ANY_KEY], file, after: { submit: "x" } });
      assertError(followed, 400, "MalformedPOSTRequest");
      const sum = digest("sha256", "other");
      const other = await post(scene, {
        fields: { "x-amz-checksum-sha256": sum },
        conditions: [ANY_KEY, { "x-amz-checksum-sha256": sum }],
        file,
      });
      assertError(other, 400, "BadDigest");
      assertError(await scene.ask("GET", "/key"), 404, "NoSuchKey");
    },
  ],
  [
    "stores files that come at the same time, however many wait for memory, and ignores what follows each",
    async (scene) => {
      const file = "0123456789abcdef".repeat(800_000);
      const answers = await Promise.all(
        Array.from({ length: 6 }, () =>
          post(scene, { conditions: [ANY_KEY], file, after: { submit: "x" } }),
        ),
      );
      for (const answer of answers) assertEmpty(answer, 204);
      assert.equal(md5((await scene.ask("GET", "/key")).body), md5(file));
    },
  ],
);
