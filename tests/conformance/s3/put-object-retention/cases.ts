// PutObjectRetention, GetObjectRetention and the effects of retention:
// https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-lock.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";
import type { Ask } from "../client.ts";

const HOUR_MS = 3_600_000;
const BYPASS = { "x-amz-bypass-governance-retention": "true" };

type Mode = "GOVERNANCE" | "COMPLIANCE";

const inHours = (hours: number) => new Date(Date.now() + hours * HOUR_MS).toISOString();

const toBody = (mode: string, until: string) =>
  `<Retention xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Mode>${mode}</Mode><RetainUntilDate>${until}</RetainUntilDate></Retention>`;

/** A bucket with object lock and one object, retained for two hours if there is a mode. */
async function lock(scene: Scene, mode?: Mode) {
  const name = await scene.createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
  const ask = (method: string, target: string, options?: Ask) =>
    scene.client.send(method, `/${name}${target}`, options);
  const headers =
    mode === undefined
      ? {}
      : { "x-amz-object-lock-mode": mode, "x-amz-object-lock-retain-until-date": inHours(2) };
  const put = await ask("PUT", "/key", { body: "x", headers });
  assert.equal(put.status, 200, put.text);
  return { ask, name, version: put.headers["x-amz-version-id"]! };
}

export const cases = casesOf(
  "PutObjectRetention",
  [
    "keeps mode and date",
    async (scene) => {
      const { ask } = await lock(scene);
      const until = inHours(1);
      assertEmpty(await ask("PUT", "/key?retention", { body: toBody("GOVERNANCE", until) }), 200);
      const found = readResult(await ask("GET", "/key?retention"), "Retention");
      assert.equal(found.get("Mode"), "GOVERNANCE");
      assert.equal(Date.parse(found.get("RetainUntilDate")!), Date.parse(until));
      const { headers } = await ask("HEAD", "/key");
      assert.equal(headers["x-amz-object-lock-mode"], "GOVERNANCE");
      assert.equal(Date.parse(headers["x-amz-object-lock-retain-until-date"]!), Date.parse(until));
    },
  ],
  [
    "headers of a put retain the object",
    async (scene) => {
      const { ask } = await lock(scene, "COMPLIANCE");
      assert.equal((await ask("GET", "/key?retention")).document.get("Mode"), "COMPLIANCE");
    },
  ],
  [
    "takes ?lock for ?retention",
    async (scene) => {
      const { ask } = await lock(scene);
      assertEmpty(await ask("PUT", "/key?lock", { body: toBody("GOVERNANCE", inHours(1)) }), 200);
      assert.equal((await ask("GET", "/key?retention")).document.get("Mode"), "GOVERNANCE");
    },
  ],
  [
    "an object without is NoSuchObjectLockConfiguration",
    async (scene) => {
      const { ask } = await lock(scene);
      assertError(await ask("GET", "/key?retention"), 404, "NoSuchObjectLockConfiguration");
    },
  ],
  [
    "InvalidRequest in a bucket without object lock",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("GET", "/key?retention"), 400, "InvalidRequest");
      const body = toBody("GOVERNANCE", inHours(1));
      assertError(await ask("PUT", "/key?retention", { body }), 400, "InvalidRequest");
    },
  ],
  [
    "InvalidRequest for a put with retention in a bucket without object lock",
    async ({ ask }) => {
      const headers = {
        "x-amz-object-lock-mode": "GOVERNANCE",
        "x-amz-object-lock-retain-until-date": inHours(1),
      };
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidRequest");
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "InvalidArgument for a put with a mode alone, a date alone, a date that is past or a mode that is none",
    async (scene) => {
      const { ask } = await lock(scene);
      const mode = "x-amz-object-lock-mode";
      const until = "x-amz-object-lock-retain-until-date";
      const bad: Record<string, string>[] = [
        { [mode]: "GOVERNANCE" },
        { [until]: inHours(1) },
        { [mode]: "GOVERNANCE", [until]: inHours(-1) },
        { [mode]: "GOVERNANCE", [until]: "tomorrow" },
        { [mode]: "FOREVER", [until]: inHours(1) },
      ];
      for (const headers of bad) {
        assertError(await ask("PUT", "/other", { headers }), 400, "InvalidArgument");
      }
    },
  ],
  [
    "MalformedXML for a mode that is none, or a mode without a date",
    async (scene) => {
      const { ask } = await lock(scene);
      const bodies = [
        toBody("governance", inHours(1)),
        "<Retention><Mode>GOVERNANCE</Mode></Retention>",
        "x",
      ];
      for (const body of bodies) {
        assertError(await ask("PUT", "/key?retention", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "InvalidArgument for a date that is past",
    async (scene) => {
      const { ask } = await lock(scene);
      const body = toBody("GOVERNANCE", inHours(-1));
      assertError(await ask("PUT", "/key?retention", { body }), 400, "InvalidArgument");
    },
  ],
  [
    "a retained version cannot be removed",
    async (scene) => {
      for (const mode of ["GOVERNANCE", "COMPLIANCE"] as const) {
        const { ask, version } = await lock(scene, mode);
        assertError(await ask("DELETE", `/key?versionId=${version}`), 403, "AccessDenied");
        assert.equal((await ask("GET", "/key")).text, "x");
      }
    },
  ],
  [
    "a delete without a version leaves a marker above what is retained",
    async (scene) => {
      const { ask, version } = await lock(scene, "COMPLIANCE");
      assertEmpty(await ask("DELETE", "/key"), 204);
      assert.equal((await ask("GET", `/key?versionId=${version}`)).text, "x");
    },
  ],
  [
    "a put makes a version above what is retained",
    async (scene) => {
      const { ask, version } = await lock(scene, "COMPLIANCE");
      assert.equal((await ask("PUT", "/key", { body: "new" })).status, 200);
      assert.equal((await ask("GET", `/key?versionId=${version}`)).text, "x");
    },
  ],
  [
    "governance can be bypassed by who may",
    async (scene) => {
      const { ask, version } = await lock(scene, "GOVERNANCE");
      const answer = await ask("DELETE", `/key?versionId=${version}`, { headers: BYPASS });
      assertEmpty(answer, 204);
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "governance cannot be bypassed by who may not",
    async (scene) => {
      const { ask, name, version } = await lock(scene, "GOVERNANCE");
      const as = await scene.createUser({
        Effect: "Allow",
        Action: ["s3:DeleteObject", "s3:DeleteObjectVersion"],
        Resource: `arn:aws:s3:::${name}/*`,
      });
      const target = `/key?versionId=${version}`;
      assertError(await ask("DELETE", target, { as, headers: BYPASS }), 403, "AccessDenied");
    },
  ],
  [
    "compliance cannot be bypassed at all",
    async (scene) => {
      const { ask, version } = await lock(scene, "COMPLIANCE");
      const target = `/key?versionId=${version}`;
      assertError(await ask("DELETE", target, { headers: BYPASS }), 403, "AccessDenied");
    },
  ],
  [
    "every retention can be made longer",
    async (scene) => {
      for (const mode of ["GOVERNANCE", "COMPLIANCE"] as const) {
        const { ask } = await lock(scene, mode);
        assertEmpty(await ask("PUT", "/key?retention", { body: toBody(mode, inHours(3)) }), 200);
      }
    },
  ],
  [
    "governance is made shorter only by who bypasses it",
    async (scene) => {
      const { ask } = await lock(scene, "GOVERNANCE");
      const body = toBody("GOVERNANCE", inHours(1));
      assertError(await ask("PUT", "/key?retention", { body }), 403, "AccessDenied");
      assertEmpty(await ask("PUT", "/key?retention", { body, headers: BYPASS }), 200);
    },
  ],
  [
    "compliance is never made shorter, nor changed to governance",
    async (scene) => {
      const { ask } = await lock(scene, "COMPLIANCE");
      for (const body of [toBody("COMPLIANCE", inHours(1)), toBody("GOVERNANCE", inHours(3))]) {
        const answer = await ask("PUT", "/key?retention", { body, headers: BYPASS });
        assertError(answer, 403, "AccessDenied");
      }
    },
  ],
  [
    "governance is changed to compliance only by who bypasses it",
    async (scene) => {
      const { ask } = await lock(scene, "GOVERNANCE");
      const body = toBody("COMPLIANCE", inHours(3));
      assertError(await ask("PUT", "/key?retention", { body }), 403, "AccessDenied");
      assertEmpty(await ask("PUT", "/key?retention", { body, headers: BYPASS }), 200);
    },
  ],
  [
    "governance is lifted only by who bypasses it, compliance never",
    async (scene) => {
      const body = "<Retention/>";
      const governed = await lock(scene, "GOVERNANCE");
      const target = "/key?retention";
      assertError(await governed.ask("PUT", target, { body }), 403, "AccessDenied");
      assertEmpty(await governed.ask("PUT", target, { body, headers: BYPASS }), 200);
      assertError(await governed.ask("GET", target), 404, "NoSuchObjectLockConfiguration");
      const bound = await lock(scene, "COMPLIANCE");
      assertError(await bound.ask("PUT", target, { body, headers: BYPASS }), 403, "AccessDenied");
    },
  ],
  [
    "an upload in parts is retained as it was begun",
    async (scene) => {
      const { ask } = await lock(scene);
      const headers = {
        "x-amz-object-lock-mode": "GOVERNANCE",
        "x-amz-object-lock-retain-until-date": inHours(1),
      };
      const begun = await ask("POST", "/parts?uploads", { headers });
      const id = begun.document.get("UploadId");
      const part = await ask("PUT", `/parts?partNumber=1&uploadId=${id}`, { body: "x" });
      const body = `<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>${part.headers["etag"]}</ETag></Part></CompleteMultipartUpload>`;
      const done = await ask("POST", `/parts?uploadId=${id}`, { body });
      const version = done.headers["x-amz-version-id"];
      assertError(await ask("DELETE", `/parts?versionId=${version}`), 403, "AccessDenied");
    },
  ],
  [
    "MalformedXML for a date that is none, InvalidArgument for one in a header",
    async (scene) => {
      const { client } = scene;
      const bucket = await scene.createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
      assert.equal((await client.send("PUT", `/${bucket}/key`)).status, 200);
      for (const date of ["2100-02-30T00:00:00Z", "2100-01-01", "4102444800", "never"]) {
        const body = `<Retention><Mode>GOVERNANCE</Mode><RetainUntilDate>${date}</RetainUntilDate></Retention>`;
        const put = await client.send("PUT", `/${bucket}/key?retention`, { body });
        assertError(put, 400, "MalformedXML");
        const headers = {
          "x-amz-object-lock-mode": "GOVERNANCE",
          "x-amz-object-lock-retain-until-date": date,
        };
        const other = await client.send("PUT", `/${bucket}/other`, { headers });
        assertError(other, 400, "InvalidArgument");
      }
    },
  ],
);
