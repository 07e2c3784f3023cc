// PutObjectLegalHold and GetObjectLegalHold: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectLegalHold.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";
import type { Ask } from "../client.ts";

const toBody = (status: string) =>
  `<LegalHold xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Status>${status}</Status></LegalHold>`;

async function lock(scene: Scene, headers: Record<string, string> = {}) {
  const name = await scene.createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
  const ask = (method: string, target: string, options?: Ask) =>
    scene.client.send(method, `/${name}${target}`, options);
  const put = await ask("PUT", "/key", { body: "x", headers });
  return { ask, version: put.headers["x-amz-version-id"]! };
}

export const cases = casesOf(
  "PutObjectLegalHold",
  [
    "keeps ON and OFF",
    async (scene) => {
      const { ask } = await lock(scene);
      for (const status of ["ON", "OFF"]) {
        assertEmpty(await ask("PUT", "/key?legal-hold", { body: toBody(status) }), 200);
        const found = readResult(await ask("GET", "/key?legal-hold"), "LegalHold");
        assert.equal(found.get("Status"), status);
        assert.equal((await ask("HEAD", "/key")).headers["x-amz-object-lock-legal-hold"], status);
      }
    },
  ],
  [
    "a header of a put holds the object",
    async (scene) => {
      const { ask } = await lock(scene, { "x-amz-object-lock-legal-hold": "ON" });
      assert.equal((await ask("GET", "/key?legal-hold")).document.get("Status"), "ON");
    },
  ],
  [
    "a version on hold cannot be removed, bypassing or not, until the hold is off",
    async (scene) => {
      const { ask, version } = await lock(scene, { "x-amz-object-lock-legal-hold": "ON" });
      const target = `/key?versionId=${version}`;
      assertError(await ask("DELETE", target), 403, "AccessDenied");
      const headers = { "x-amz-bypass-governance-retention": "true" };
      assertError(await ask("DELETE", target, { headers }), 403, "AccessDenied");
      await ask("PUT", "/key?legal-hold", { body: toBody("OFF") });
      assertEmpty(await ask("DELETE", target), 204);
    },
  ],
  [
    "an object without is NoSuchObjectLockConfiguration",
    async (scene) => {
      const { ask } = await lock(scene);
      assertError(await ask("GET", "/key?legal-hold"), 404, "NoSuchObjectLockConfiguration");
    },
  ],
  [
    "InvalidRequest in a bucket without object lock",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("GET", "/key?legal-hold"), 400, "InvalidRequest");
      assertError(
        await ask("PUT", "/key?legal-hold", { body: toBody("ON") }),
        400,
        "InvalidRequest",
      );
      const headers = { "x-amz-object-lock-legal-hold": "ON" };
      assertError(await ask("PUT", "/other", { headers }), 400, "InvalidRequest");
    },
  ],
  [
    "MalformedXML for a status that is none",
    async (scene) => {
      const { ask } = await lock(scene);
      for (const body of [toBody("on"), "<LegalHold/>", "x"]) {
        assertError(await ask("PUT", "/key?legal-hold", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "InvalidArgument for a header that is neither ON nor OFF",
    async (scene) => {
      const { ask } = await lock(scene);
      const headers = { "x-amz-object-lock-legal-hold": "yes" };
      assertError(await ask("PUT", "/other", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidRequest for a header of any hold in a bucket without object lock, at once for uploads in parts",
    async ({ ask }) => {
      for (const status of ["ON", "OFF"]) {
        const headers = { "x-amz-object-lock-legal-hold": status };
        assertError(await ask("PUT", "/key", { headers }), 400, "InvalidRequest");
        assertError(await ask("POST", "/key?uploads", { headers }), 400, "InvalidRequest");
      }
    },
  ],
);
