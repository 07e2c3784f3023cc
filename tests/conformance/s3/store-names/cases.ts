// x-store- headers, which are aliases of the x-amz- headers.
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf } from "../case.ts";
import { EMPTY_SHA256, toTimestamp } from "../signature.ts";

export const cases = casesOf(
  "x-store- names",
  [
    "are taken for metadata and answered under both names",
    async ({ ask, put }) => {
      await put("key", "x", { "x-store-meta-a": "1" });
      const { headers } = await ask("HEAD", "/key");
      assert.equal(headers["x-amz-meta-a"], "1");
      assert.equal(headers["x-store-meta-a"], "1");
    },
  ],
  [
    "are taken for the hash and the date of a signature",
    async ({ ask }) => {
      const headers = {
        "x-store-content-sha256": EMPTY_SHA256,
        "x-store-date": toTimestamp(new Date()),
      };
      assert.equal((await ask("GET", "", { headers })).status, 200);
    },
  ],
  [
    "are taken for ACLs, tags and storage classes",
    async ({ ask, put }) => {
      await put("key", "x", {
        "x-store-acl": "public-read",
        "x-store-tagging": "a=1",
        "x-store-storage-class": "STANDARD_IA",
      });
      const { headers } = await ask("HEAD", "/key", { as: "nobody" });
      assert.equal(headers["x-store-tagging-count"], "1");
      assert.equal(headers["x-store-storage-class"], "STANDARD_IA");
    },
  ],
  [
    "must be signed",
    async ({ ask }) => {
      const spoil = (headers: Record<string, string>) => {
        headers["x-store-meta-a"] = "1";
      };
      assertError(await ask("PUT", "/key", { spoil }), 403, "AccessDenied");
    },
  ],
  [
    "beside the other name with the same value are one",
    async ({ ask }) => {
      const headers = { "x-amz-meta-a": "1", "x-store-meta-a": "1" };
      assertEmpty(await ask("PUT", "/key", { headers }), 200);
    },
  ],
  [
    "beside the other name with another value are InvalidRequest",
    async ({ ask }) => {
      const headers = { "x-amz-acl": "private", "x-store-acl": "public-read" };
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidRequest");
      assert.equal((await ask("HEAD", "/key")).status, 404);
    },
  ],
  [
    "name versions and markers in answers",
    async ({ ask, put, setVersioning }) => {
      await setVersioning("Enabled");
      const { headers } = await put("key", "x");
      assert.equal(headers["x-store-version-id"], headers["x-amz-version-id"]);
      const marker = await ask("DELETE", "/key");
      assert.equal(marker.headers["x-store-delete-marker"], "true");
    },
  ],
  [
    "are in errors, too",
    async ({ ask }) => {
      const answer = await ask("GET", "/key");
      assert.equal(answer.headers["x-store-request-id"], answer.document.get("RequestId"));
    },
  ],
  [
    "lock objects",
    async ({ client, createBucket }) => {
      const name = await createBucket({ "x-store-bucket-object-lock-enabled": "true" });
      const headers = {
        "x-store-object-lock-mode": "GOVERNANCE",
        "x-store-object-lock-retain-until-date": new Date(Date.now() + 3_600_000).toISOString(),
      };
      const put = await client.send("PUT", `/${name}/key`, { headers });
      const target = `/${name}/key?versionId=${put.headers["x-store-version-id"]}`;
      assertError(await client.send("DELETE", target), 403, "AccessDenied");
      const bypass = { "x-store-bypass-governance-retention": "true" };
      assertEmpty(await client.send("DELETE", target, { headers: bypass }), 204);
    },
  ],
);
