// Encryption with named keys (SSE-KMS):
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingKMSEncryption.html
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/specifying-kms-encryption.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, md5, readResult } from "../case.ts";
import {
  assertKey,
  BUCKET_KEY,
  changeKey,
  CONTEXT,
  createKey,
  deleteKey,
  KEY_ID,
  SSE,
  toDefault,
  withKey,
} from "../named-key.ts";
import { askToComplete, begin, complete, PART, putPart, upload } from "../upload.ts";

const UNKNOWN = "00000000-0000-4000-8000-000000000000";
const toContext = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
const allow = (bucket: string, ...actions: string[]) => ({
  Effect: "Allow",
  Action: actions,
  Resource: `arn:aws:s3:::${bucket}/*`,
});

export const cases = casesOf(
  "Encryption with named keys",
  [
    "a key by its id, its ARN, its alias and the cloud's forms of them: answers name the ARN",
    async (scene) => {
      const { put, ask } = scene;
      const key = await createKey(scene);
      const forms = [
        key.id,
        key.arn,
        key.alias,
        `arn:aws:kms:eu-west-1:111122223333:key/${key.id}`,
        `arn:aws:kms:eu-west-1:111122223333:${key.alias}`,
      ];
      for (const form of forms) {
        assertKey(await put("key", "hello", withKey(form)), key);
        assertKey(await ask("HEAD", "/key"), key);
        const got = await ask("GET", "/key");
        assertKey(got, key);
        assert.equal(got.text, "hello");
        assert.equal(got.headers["content-length"], "5");
      }
    },
  ],
  [
    "without a key the default key, which is always the same one",
    async ({ put, ask }) => {
      const first = await put("one", "hello", withKey());
      const second = await put("two", "hello", withKey());
      assert.equal(first.headers[SSE], "aws:kms");
      assert.match(first.headers[KEY_ID] ?? "", /^arn:objstore:kms:::key\/[0-9a-f-]{36}$/);
      assert.equal(second.headers[KEY_ID], first.headers[KEY_ID]);
      const named = await put("three", "hello", withKey("alias/aws/s3"));
      assert.equal(named.headers[KEY_ID], first.headers[KEY_ID]);
      assert.equal((await ask("GET", "/one")).text, "hello");
    },
  ],
  [
    "the ETag is not the MD5 of the object, and is 32 hexadecimal digits",
    async (scene) => {
      const key = await createKey(scene);
      const stored = await scene.put("key", "hello", withKey(key.id));
      assert.match(stored.headers["etag"]!, /^"[0-9a-f]{32}"$/);
      assert.notEqual(stored.headers["etag"], `"${md5("hello")}"`);
      assert.equal((await scene.ask("HEAD", "/key")).headers["etag"], stored.headers["etag"]);
    },
  ],
  [
    "gives ranges anywhere",
    async (scene) => {
      const key = await createKey(scene);
      const body = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 11) % 253));
      await scene.put("key", body, withKey(key.id));
      for (const [start, end] of [
        [0, 9],
        [65_530, 65_550],
        [131_072, 200_000],
        [299_999, 299_999],
      ] as const) {
        const got = await scene.ask("GET", "/key", { headers: { range: `bytes=${start}-${end}` } });
        assert.ok(got.body.equals(body.subarray(start, end + 1)), `${start}-${end}`);
        assertKey(got, key);
      }
    },
  ],
  [
    "GetObjectAttributes names the key",
    async (scene) => {
      const key = await createKey(scene);
      await scene.put("key", "hello", withKey(key.id));
      const headers = { "x-amz-object-attributes": "ETag,ObjectSize" };
      const answer = await scene.ask("GET", "/key?attributes", { headers });
      assert.equal(readResult(answer, "GetObjectAttributesResponse").get("ObjectSize"), "5");
      assertKey(answer, key);
    },
  ],
  [
    "an encryption context is told by the answer to a write, and not to a read",
    async (scene) => {
      const key = await createKey(scene);
      const context = toContext({ team: "red", app: "ä" });
      const stored = await scene.put("key", "hello", { ...withKey(key.id), [CONTEXT]: context });
      const told = Buffer.from(stored.headers[CONTEXT]!, "base64").toString();
      assert.deepEqual(JSON.parse(told), { team: "red", app: "ä" });
      const got = await scene.ask("GET", "/key");
      assert.equal(got.text, "hello");
      assert.equal(got.headers[CONTEXT], undefined);
    },
  ],
  [
    "InvalidArgument for a context that is no map of texts",
    async (scene) => {
      const { id } = await createKey(scene);
      const bad = [
        "x",
        toContext([]),
        toContext({ a: 1 }),
        toContext("a"),
        toContext(null),
        Buffer.from([0xff, 0xfe]).toString("base64"),
        "A".repeat(9_000),
      ];
      for (const context of bad) {
        const headers = { ...withKey(id), [CONTEXT]: context };
        assertError(await scene.ask("PUT", "/key", { headers }), 400, "InvalidArgument");
      }
      assert.equal((await scene.ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "InvalidArgument for a context or a key without the algorithm, or with another one",
    async (scene) => {
      const { id } = await createKey(scene);
      for (const fields of [
        { [KEY_ID]: id },
        { [CONTEXT]: toContext({ a: "b" }) },
        { [SSE]: "AES256", [KEY_ID]: id },
        { [SSE]: "AES256", [CONTEXT]: toContext({ a: "b" }) },
      ]) {
        const answer = await scene.ask("PUT", "/key", { headers: fields, body: "x" });
        assertError(answer, 400, "InvalidArgument");
      }
      assert.equal((await scene.ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "the switch for bucket keys is told where it is on, and is true or false",
    async (scene) => {
      const { id } = await createKey(scene);
      const on = await scene.put("on", "x", { ...withKey(id), [BUCKET_KEY]: "true" });
      assert.equal(on.headers[BUCKET_KEY], "true");
      assert.equal((await scene.ask("GET", "/on")).headers[BUCKET_KEY], "true");
      const off = await scene.put("off", "x", { ...withKey(id), [BUCKET_KEY]: "false" });
      assert.equal(off.headers[BUCKET_KEY], undefined);
      const headers = { ...withKey(id), [BUCKET_KEY]: "on" };
      assertError(await scene.ask("PUT", "/bad", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "KMS.NotFoundException for keys that are not there, in any form",
    async ({ ask }) => {
      for (const form of [
        UNKNOWN,
        "alias/missing",
        `arn:objstore:kms:::key/${UNKNOWN}`,
        "arn:aws:kms:eu-west-1:111122223333:alias/missing",
        "arn:aws:s3:::bucket",
        "not a key",
        "key/../x",
      ]) {
        const answer = await ask("PUT", "/key", { headers: withKey(form), body: "x" });
        assertError(answer, 400, "KMS.NotFoundException");
      }
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "KMS.DisabledException for a disabled key: writes and reads, not HEAD; enabled again, all is there",
    async (scene) => {
      const { ask, put } = scene;
      const key = await createKey(scene);
      await put("key", "hello", withKey(key.id));
      await changeKey(scene, key, "disable");
      const headers = withKey(key.id);
      assertError(await ask("PUT", "/new", { headers, body: "x" }), 400, "KMS.DisabledException");
      assertError(await ask("GET", "/key"), 400, "KMS.DisabledException");
      const range = { headers: { range: "bytes=0-1" } };
      assertError(await ask("GET", "/key", range), 400, "KMS.DisabledException");
      assertKey(await ask("HEAD", "/key"), key);
      assert.equal((await ask("HEAD", "/new")).status, 404);
      await changeKey(scene, key, "enable");
      assert.equal((await ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "KMS.KMSInvalidStateException for a key whose deletion is pending",
    async (scene) => {
      const { ask, put } = scene;
      const key = await createKey(scene);
      await put("key", "hello", withKey(key.id));
      await deleteKey(scene, key);
      assertError(await ask("GET", "/key"), 400, "KMS.KMSInvalidStateException");
      const headers = withKey(key.alias);
      assertError(await ask("PUT", "/new", { headers }), 400, "KMS.KMSInvalidStateException");
      await changeKey(scene, key, "enable");
      assert.equal((await ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "an empty object under a disabled key cannot be read either",
    async (scene) => {
      const key = await createKey(scene);
      await scene.put("key", "", withKey(key.id));
      await changeKey(scene, key, "disable");
      assertError(await scene.ask("GET", "/key"), 400, "KMS.DisabledException");
    },
  ],
  [
    "NotImplemented for two layers of encryption, and nothing is stored",
    async ({ ask }) => {
      const headers = { [SSE]: "aws:kms:dsse" };
      assertError(await ask("PUT", "/key", { headers, body: "x" }), 501, "NotImplemented");
      const body = toDefault("aws:kms:dsse");
      assertError(await ask("PUT", "?encryption", { body }), 501, "NotImplemented");
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "InvalidEncryptionAlgorithmError for an algorithm that is not known",
    async ({ ask }) => {
      const headers = { [SSE]: "aws:rot13" };
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidEncryptionAlgorithmError");
    },
  ],
  [
    "InvalidArgument together with a customer's key",
    async (scene) => {
      const { id } = await createKey(scene);
      const customer = Buffer.alloc(32, 1);
      const headers = {
        ...withKey(id),
        "x-amz-server-side-encryption-customer-algorithm": "AES256",
        "x-amz-server-side-encryption-customer-key": customer.toString("base64"),
        "x-amz-server-side-encryption-customer-key-md5": Buffer.from(md5(customer), "hex").toString(
          "base64",
        ),
      };
      assertError(await scene.ask("PUT", "/key", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidArgument for readers without a signature of version 4, also where a policy lets everyone read",
    async (scene) => {
      const { ask, must, put, bucket } = scene;
      const key = await createKey(scene);
      await put("key", "hello", withKey(key.id));
      await put("plain", "hello");
      const Statement = { ...allow(bucket, "s3:GetObject"), Principal: "*" };
      await must("PUT", "?policy", { body: JSON.stringify({ Statement }) });
      assert.equal((await ask("GET", "/plain", { as: "nobody" })).text, "hello");
      assertError(await ask("GET", "/key", { as: "nobody" }), 400, "InvalidArgument");
    },
  ],
  [
    "a presigned URL reads and writes",
    async ({ client, bucket, ...scene }) => {
      const key = await createKey({ client, bucket, ...scene });
      const target = client.presign("PUT", `/${bucket}/key`, { headers: withKey(key.id) });
      const headers = withKey(key.id);
      const stored = await client.send("PUT", target, { headers, body: "hello", as: "nobody" });
      assert.equal(stored.status, 200, stored.text);
      assertKey(stored, key);
      const read = await client.send("GET", client.presign("GET", `/${bucket}/key`), {
        as: "nobody",
      });
      assert.equal(read.text, "hello");
    },
  ],
  [
    "uploads in parts are under the key of their beginning",
    async (scene) => {
      const key = await createKey(scene);
      const headers = { ...withKey(key.alias), [BUCKET_KEY]: "true" };
      const id = await begin(scene, "key", headers);
      const target = `/key?partNumber=1&uploadId=${id}`;
      const part = await scene.must("PUT", target, { body: PART });
      assertKey(part, key);
      assert.equal(part.headers[BUCKET_KEY], "true");
      const last = await putPart(scene, "key", id, 2, "last");
      const first = { number: 1, etag: part.headers["etag"]! };
      const { answer } = await complete(scene, "key", id, [first, last]);
      assertKey(answer, key);
      const got = await scene.ask("GET", "/key");
      assert.ok(got.body.equals(Buffer.concat([PART, Buffer.from("last")])));
      assertKey(got, key);
      assert.equal(got.headers[BUCKET_KEY], "true");
    },
  ],
  [
    "the answer to the beginning of an upload names key and context",
    async (scene) => {
      const key = await createKey(scene);
      const headers = { ...withKey(key.id), [CONTEXT]: toContext({ a: "b" }) };
      const begun = await scene.must("POST", "/key?uploads", { headers });
      assertKey(begun, key);
      assert.equal(begun.headers[CONTEXT], toContext({ a: "b" }));
    },
  ],
  [
    "KMS.DisabledException for parts and the end of an upload whose key was disabled; enabled, it goes on",
    async (scene) => {
      const key = await createKey(scene);
      const id = await begin(scene, "key", withKey(key.id));
      const first = await putPart(scene, "key", id, 1, "only");
      await changeKey(scene, key, "disable");
      const target = `/key?partNumber=2&uploadId=${id}`;
      assertError(await scene.ask("PUT", target, { body: "x" }), 400, "KMS.DisabledException");
      assertError(await askToComplete(scene, "key", id, [first]), 400, "KMS.DisabledException");
      await changeKey(scene, key, "enable");
      await complete(scene, "key", id, [first]);
      assert.equal((await scene.ask("GET", "/key")).text, "only");
    },
  ],
  [
    "a copy from one key to another, from SSE-S3 and back",
    async (scene) => {
      const { must, ask, put, bucket } = scene;
      const [one, two] = [await createKey(scene), await createKey(scene)];
      await put("one", "hello", withKey(one.id));
      const copy = (from: string, to: string, headers: Record<string, string>) =>
        must("PUT", `/${to}`, {
          headers: { "x-amz-copy-source": `${bucket}/${from}`, ...headers },
        });
      assertKey(await copy("one", "two", withKey(two.id)), two);
      assertKey(await ask("GET", "/two"), two);
      const plain = await copy("two", "s3", { [SSE]: "AES256" });
      assert.equal(plain.headers[SSE], "AES256");
      assertKey(await copy("s3", "three", withKey(one.arn)), one);
      for (const name of ["one", "two", "s3", "three"])
        assert.equal((await ask("GET", `/${name}`)).text, "hello", name);
    },
  ],
  [
    "a copy without a word keeps the key, and one with the same key and another context has that",
    async (scene) => {
      const { must, ask, put, bucket } = scene;
      const key = await createKey(scene);
      await put("one", "hello", withKey(key.id));
      const source = { "x-amz-copy-source": `${bucket}/one` };
      assertKey(await must("PUT", "/two", { headers: source }), key);
      const context = toContext({ a: "b" });
      const headers = { ...source, ...withKey(key.id), [CONTEXT]: context };
      const copied = await must("PUT", "/three", { headers });
      assert.equal(copied.headers[CONTEXT], context);
      for (const name of ["two", "three"])
        assert.equal((await ask("GET", `/${name}`)).text, "hello", name);
    },
  ],
  [
    "an object may be copied onto itself to change its key",
    async (scene) => {
      const { must, ask, put, bucket } = scene;
      const [one, two] = [await createKey(scene), await createKey(scene)];
      await put("key", "hello", withKey(one.id));
      const headers = { "x-amz-copy-source": `${bucket}/key`, ...withKey(two.id) };
      assertKey(await must("PUT", "/key", { headers }), two);
      await changeKey(scene, one, "disable");
      assert.equal((await ask("GET", "/key")).text, "hello");
    },
  ],
  [
    "KMS.DisabledException for a copy whose source or target key is disabled",
    async (scene) => {
      const { ask, put, bucket } = scene;
      const key = await createKey(scene);
      await put("one", "hello", withKey(key.id));
      await put("plain", "hello");
      await changeKey(scene, key, "disable");
      const copy = (from: string, headers = {}) =>
        ask("PUT", "/new", { headers: { "x-amz-copy-source": `${bucket}/${from}`, ...headers } });
      assertError(await copy("one"), 400, "KMS.DisabledException");
      assertError(await copy("one", { [SSE]: "AES256" }), 400, "KMS.DisabledException");
      assertError(await copy("plain", withKey(key.id)), 400, "KMS.DisabledException");
      assert.equal((await ask("HEAD", "/new")).status, 404);
    },
  ],
  [
    "parts are copied from an object under another key",
    async (scene) => {
      const { must, put, ask, bucket } = scene;
      const [one, two] = [await createKey(scene), await createKey(scene)];
      await put("source", "hello world", withKey(one.id));
      const id = await begin(scene, "key", withKey(two.id));
      const target = `/key?partNumber=1&uploadId=${id}`;
      const headers = {
        "x-amz-copy-source": `${bucket}/source`,
        "x-amz-copy-source-range": "bytes=6-10",
      };
      const part = await must("PUT", target, { headers });
      assertKey(part, two);
      const etag = part.document.get("ETag")!;
      await complete(scene, "key", id, [{ number: 1, etag }]);
      assert.equal((await ask("GET", "/key")).text, "world");
    },
  ],
  [
    "the default of a bucket applies to puts, copies and uploads that ask for nothing",
    async (scene) => {
      const { must, ask, put, bucket } = scene;
      const key = await createKey(scene);
      await put("plain", "hello");
      assertEmpty(
        await ask("PUT", "?encryption", { body: toDefault("aws:kms", key.arn, true) }),
        200,
      );
      const kept = (await ask("GET", "?encryption")).document;
      const path = "Rule/ApplyServerSideEncryptionByDefault";
      assert.equal(kept.get(`${path}/SSEAlgorithm`), "aws:kms");
      assert.equal(kept.get(`${path}/KMSMasterKeyID`), key.arn);
      assert.equal(kept.get("Rule/BucketKeyEnabled"), "true");
      const stored = await put("one", "hello");
      assertKey(stored, key);
      assert.equal(stored.headers[BUCKET_KEY], "true");
      const headers = { "x-amz-copy-source": `${bucket}/plain` };
      assertKey(await must("PUT", "/two", { headers }), key);
      const { answer } = await upload(scene, "three", ["part"]);
      assertKey(answer, key);
      assert.equal((await put("four", "x", { [SSE]: "AES256" })).headers[SSE], "AES256");
    },
  ],
  [
    "the default of a bucket without a key is the default key, and one by alias follows the alias",
    async (scene) => {
      const { must, put } = scene;
      await must("PUT", "?encryption", { body: toDefault("aws:kms") });
      const first = await put("one", "x");
      const second = await put("two", "x", withKey());
      assert.equal(first.headers[KEY_ID], second.headers[KEY_ID]);
      const key = await createKey(scene);
      await must("PUT", "?encryption", { body: toDefault("aws:kms", key.alias) });
      assertKey(await put("three", "x"), key);
    },
  ],
  [
    "a key without a word in the request is the default one, whatever the bucket's is",
    async (scene) => {
      const key = await createKey(scene);
      await scene.must("PUT", "?encryption", { body: toDefault("aws:kms", key.id, true) });
      const stored = await scene.put("one", "x", withKey());
      assert.notEqual(stored.headers[KEY_ID], key.arn);
      assert.equal(stored.headers[BUCKET_KEY], "true");
    },
  ],
  [
    "a default may name a key that is not there yet: puts fail until it is",
    async ({ ask }) => {
      const body = toDefault("aws:kms", UNKNOWN);
      assertEmpty(await ask("PUT", "?encryption", { body }), 200);
      assertError(await ask("PUT", "/key", { body: "x" }), 400, "KMS.NotFoundException");
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "InvalidArgument for a default of SSE-S3 with a key",
    async ({ ask }) => {
      const body = toDefault("AES256", UNKNOWN);
      assertError(await ask("PUT", "?encryption", { body }), 400, "InvalidArgument");
    },
  ],
  [
    "who may read and write an object may use its key",
    async (scene) => {
      const { ask, bucket } = scene;
      const key = await createKey(scene);
      const as = await scene.createUser(allow(bucket, "s3:GetObject", "s3:PutObject"));
      const headers = withKey(key.id);
      assert.equal((await ask("PUT", "/key", { as, headers, body: "hello" })).status, 200);
      assert.equal((await ask("GET", "/key", { as })).text, "hello");
    },
  ],
  [
    "AccessDenied where a user's policy denies kms:Decrypt or kms:GenerateDataKey on the key",
    async (scene) => {
      const { ask, bucket, put } = scene;
      const [key, other] = [await createKey(scene), await createKey(scene)];
      await put("key", "hello", withKey(key.id));
      await put("other", "hello", withKey(other.id));
      const access = allow(bucket, "s3:GetObject", "s3:PutObject");
      const deny = (action: string) => ({ Effect: "Deny", Action: action, Resource: key.arn });
      const reader = await scene.createUser(access, deny("kms:GenerateDataKey*"));
      const writer = await scene.createUser(access, deny("kms:Decrypt"));
      const headers = withKey(key.id);
      const write = (as: typeof reader) => ask("PUT", "/new", { as, headers, body: "x" });
      assertError(await write(reader), 403, "AccessDenied");
      assert.equal((await ask("GET", "/key", { as: reader })).text, "hello");
      assertError(await ask("GET", "/key", { as: writer }), 403, "AccessDenied");
      assert.equal((await ask("GET", "/other", { as: writer })).text, "hello");
      assert.equal((await write(writer)).status, 200);
    },
  ],
  [
    "AccessDenied for who may write but not decrypt, where an upload in parts begins",
    async (scene) => {
      const { ask, bucket } = scene;
      const key = await createKey(scene);
      const as = await scene.createUser(allow(bucket, "s3:PutObject"), {
        Effect: "Deny",
        Action: "kms:Decrypt",
        Resource: "*",
      });
      const headers = withKey(key.id);
      assertError(await ask("POST", "/key?uploads", { as, headers }), 403, "AccessDenied");
    },
  ],
  [
    "a key with a policy of its own is for those whom it, or their policies, allow",
    async (scene) => {
      const { ask, bucket } = scene;
      const access = allow(bucket, "s3:GetObject", "s3:PutObject");
      const named = await scene.createUser(access);
      const allowed = await scene.createUser(access, {
        Effect: "Allow",
        Action: "kms:*",
        Resource: "*",
      });
      const other = await scene.createUser(access);
      const policy = {
        Statement: {
          Effect: "Allow",
          Principal: { AWS: `arn:aws:iam::000000000001:user/${named.user}` },
          Action: ["kms:GenerateDataKey", "kms:Decrypt"],
          Resource: "*",
        },
      };
      const key = await createKey(scene, { policy });
      const headers = withKey(key.id);
      for (const as of [named, allowed]) {
        assert.equal((await ask("PUT", "/key", { as, headers, body: "hello" })).status, 200);
        assert.equal((await ask("GET", "/key", { as })).text, "hello");
      }
      assertError(await ask("PUT", "/key", { as: other, headers }), 403, "AccessDenied");
      assertError(await ask("GET", "/key", { as: other }), 403, "AccessDenied");
    },
  ],
  [
    "a bucket's policy may require the algorithm and the key of new objects",
    async (scene) => {
      const { ask, must, bucket } = scene;
      const key = await createKey(scene);
      const as = await scene.createUser(allow(bucket, "s3:PutObject"));
      const deny = (Condition: object) => ({
        Effect: "Deny",
        Principal: "*",
        Action: "s3:PutObject",
        Resource: `arn:aws:s3:::${bucket}/*`,
        Condition,
      });
      const Statement = [
        deny({ StringNotEquals: { "s3:x-amz-server-side-encryption": "aws:kms" } }),
        deny({
          StringNotEquals: { "s3:x-amz-server-side-encryption-aws-kms-key-id": key.arn },
        }),
      ];
      await must("PUT", "?policy", {
        body: JSON.stringify({ Version: "2012-10-17", Statement }),
      });
      const write = (headers = {}) => ask("PUT", "/key", { as, headers, body: "x" });
      assertError(await write(), 403, "AccessDenied");
      assertError(await write(withKey()), 403, "AccessDenied");
      assertError(await write({ [SSE]: "AES256" }), 403, "AccessDenied");
      // The key by any of its names.
      for (const form of [key.id, key.alias, key.arn])
        assert.equal((await write(withKey(form))).status, 200, form);
    },
  ],
  [
    "MalformedPolicy for actions on keys in the policy of a bucket",
    async ({ ask, bucket }) => {
      const Statement = { ...allow(bucket, "kms:Decrypt"), Principal: "*" };
      const body = JSON.stringify({ Statement });
      assertError(await ask("PUT", "?policy", { body }), 400, "MalformedPolicy");
    },
  ],
  [
    "objects from before and after the rotation of their key are read, and the key keeps its name",
    async (scene) => {
      const { ask, put } = scene;
      const key = await createKey(scene);
      await put("before", "hello", withKey(key.id));
      await changeKey(scene, key, "rotate");
      assertKey(await put("after", "hello", withKey(key.id)), key);
      for (const name of ["before", "after"]) {
        const got = await ask("GET", `/${name}`);
        assert.equal(got.text, "hello");
        assertKey(got, key);
      }
    },
  ],
  [
    "reads refuse the headers of writes",
    async (scene) => {
      const key = await createKey(scene);
      await scene.put("key", "x", withKey(key.id));
      const headers = withKey(key.id);
      assertError(await scene.ask("GET", "/key", { headers }), 400, "InvalidArgument");
    },
  ],
);
