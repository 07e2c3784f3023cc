// GetObjectAttributes: https://docs.aws.amazon.com/AmazonS3/latest/API/API_GetObjectAttributes.html
import assert from "node:assert/strict";
import { assertError, casesOf, digest, md5, readResult, type Scene } from "../case.ts";
import { PART, askToComplete, begin, putPart, upload } from "../upload.ts";

async function read({ ask }: Scene, names: string, more: Record<string, string> = {}) {
  const headers = { "x-amz-object-attributes": names, ...more };
  return readResult(
    await ask("GET", "/key?attributes", { headers }),
    "GetObjectAttributesResponse",
  );
}

export const cases = casesOf(
  "GetObjectAttributes",
  [
    "tells what is asked for, the ETag without quotes",
    async (scene) => {
      await scene.put("key", "123456789", { "x-amz-checksum-crc32": "y/Q5Jg==" });
      const found = await read(scene, "ETag,Checksum,StorageClass,ObjectSize");
      assert.equal(found.get("ETag"), md5("123456789"));
      assert.equal(found.get("Checksum/ChecksumCRC32"), "y/Q5Jg==");
      assert.equal(found.get("Checksum/ChecksumType"), "FULL_OBJECT");
      assert.equal(found.get("StorageClass"), "STANDARD");
      assert.equal(found.get("ObjectSize"), "9");
    },
  ],
  [
    "tells nothing else",
    async (scene) => {
      await scene.put("key", "x");
      const found = await read(scene, "ObjectSize");
      assert.deepEqual(
        found.children.map(({ name }) => name),
        ["ObjectSize"],
      );
    },
  ],
  [
    "names time and version in headers",
    async (scene) => {
      await scene.setVersioning("Enabled");
      const version = (await scene.put("key", "x")).headers["x-amz-version-id"];
      const headers = { "x-amz-object-attributes": "ETag" };
      const answer = await scene.ask("GET", "/key?attributes", { headers });
      assert.equal(answer.headers["x-amz-version-id"], version);
      assert.ok(answer.headers["last-modified"] !== undefined);
    },
  ],
  [
    "tells the number of parts",
    async (scene) => {
      await upload(scene, "key", [PART, "last"]);
      const found = await read(scene, "ObjectParts,ObjectSize");
      assert.equal(found.get("ObjectParts/PartsCount"), "2");
      assert.equal(found.get("ObjectSize"), String(PART.length + 4));
    },
  ],
  [
    "tells the parts with their checksums, in pages",
    async (scene) => {
      const id = await begin(scene, "key", { "x-amz-checksum-algorithm": "SHA256" });
      const bodies = [PART, Buffer.from("last")];
      const parts = [];
      for (const [index, body] of bodies.entries()) {
        const headers = { "x-amz-checksum-sha256": digest("sha256", body) };
        parts.push(await putPart(scene, "key", id, index + 1, body, headers));
      }
      const done = await askToComplete(scene, "key", id, parts);
      assert.equal(done.status, 200, done.text);
      const whole = (await read(scene, "Checksum")).get("Checksum/ChecksumSHA256");
      const sums = bodies.map((body) => Buffer.from(digest("sha256", body), "base64"));
      assert.equal(whole, digest("sha256", Buffer.concat(sums)), "without the number of parts");
      const first = await read(scene, "ObjectParts", { "x-amz-max-parts": "1" });
      assert.equal(first.get("ObjectParts/IsTruncated"), "true");
      assert.equal(first.get("ObjectParts/NextPartNumberMarker"), "1");
      assert.equal(first.get("ObjectParts/Part/ChecksumSHA256"), digest("sha256", PART));
      const rest = await read(scene, "ObjectParts", { "x-amz-part-number-marker": "1" });
      assert.equal(rest.get("ObjectParts/Part/PartNumber"), "2");
      assert.equal(rest.get("ObjectParts/Part/Size"), "4");
      assert.equal(rest.get("ObjectParts/IsTruncated"), "false");
    },
  ],
  [
    "InvalidArgument for an attribute that is not known, and for none",
    async ({ ask, put }) => {
      await put("key", "x");
      const headers = { "x-amz-object-attributes": "ETag,Colour" };
      assertError(await ask("GET", "/key?attributes", { headers }), 400, "InvalidArgument");
      assertError(await ask("GET", "/key?attributes"), 400, "InvalidArgument");
    },
  ],
  [
    "NoSuchKey for what is not there",
    async ({ ask }) => {
      const headers = { "x-amz-object-attributes": "ETag" };
      assertError(await ask("GET", "/key?attributes", { headers }), 404, "NoSuchKey");
    },
  ],
  [
    "MethodNotAllowed for a delete marker that is named",
    async ({ ask, must, put, setVersioning }) => {
      await setVersioning("Enabled");
      await put("key", "x");
      const marker = (await must("DELETE", "/key")).headers["x-amz-version-id"];
      const headers = { "x-amz-object-attributes": "ETag" };
      const answer = await ask("GET", `/key?attributes&versionId=${marker}`, { headers });
      assertError(answer, 405, "MethodNotAllowed");
      assert.equal(answer.headers["x-amz-delete-marker"], "true");
    },
  ],
  [
    "needs the permission to read the object and the one to read its attributes",
    async ({ ask, put, createUser, bucket }) => {
      await put("key", "x");
      const headers = { "x-amz-object-attributes": "ETag" };
      const send = async (...actions: string[]) => {
        const rule = { Effect: "Allow", Action: actions, Resource: `arn:aws:s3:::${bucket}/*` };
        return ask("GET", "/key?attributes", { as: await createUser(rule), headers });
      };
      assert.equal((await send("s3:GetObject", "s3:GetObjectAttributes")).status, 200);
      assertError(await send("s3:GetObject"), 403, "AccessDenied");
      assertError(await send("s3:GetObjectAttributes"), 403, "AccessDenied");
    },
  ],
  [
    "does not tell which keys are missing to who may not list, nor do tags and lists",
    async ({ ask, bucket, createUser }) => {
      const user = await createUser({
        Effect: "Allow",
        Action: ["s3:GetObject*"],
        Resource: `arn:aws:s3:::${bucket}/*`,
      });
      const headers = { "x-amz-object-attributes": "ETag" };
      for (const name of ["attributes", "tagging", "acl"]) {
        const answer = await ask("GET", `/missing?${name}`, { as: user, headers });
        assertError(answer, 403, "AccessDenied");
      }
    },
  ],
  [
    "who may not list the bucket does not learn which keys are missing",
    async ({ ask, createUser, bucket }) => {
      const headers = { "x-amz-object-attributes": "ETag" };
      const read = {
        Effect: "Allow",
        Action: ["s3:GetObject", "s3:GetObjectAttributes"],
        Resource: `arn:aws:s3:::${bucket}/*`,
      };
      const list = { Effect: "Allow", Action: "s3:ListBucket", Resource: `arn:aws:s3:::${bucket}` };
      const one = await createUser(read);
      const both = await createUser(read, list);
      const send = (as: typeof one) => ask("GET", "/missing?attributes", { as, headers });
      assertError(await send(one), 403, "AccessDenied");
      assertError(await send(both), 404, "NoSuchKey");
    },
  ],
);
