// What clients ask of every bucket, answered as S3 answers where nothing was put.
import assert from "node:assert/strict";
import { assertError, casesOf, readResult } from "../case.ts";

/** The cases. */
export const cases = casesOf(
  "Unset configurations",
  [
    "replication is ReplicationConfigurationNotFoundError",
    async ({ ask }) => {
      const answer = await ask("GET", "?replication");
      assertError(answer, 404, "ReplicationConfigurationNotFoundError");
    },
  ],
  [
    "logging is empty",
    async ({ ask }) => {
      const found = readResult(await ask("GET", "?logging"), "BucketLoggingStatus");
      assert.deepEqual(found.children, []);
    },
  ],
  [
    "the owner pays",
    async ({ ask }) => {
      const found = readResult(await ask("GET", "?requestPayment"), "RequestPaymentConfiguration");
      assert.equal(found.get("Payer"), "BucketOwner");
    },
  ],
  [
    "acceleration is empty",
    async ({ ask }) => {
      const found = readResult(await ask("GET", "?accelerate"), "AccelerateConfiguration");
      assert.deepEqual(found.children, []);
    },
  ],
  [
    "notification is empty",
    async ({ ask }) => {
      const found = readResult(await ask("GET", "?notification"), "NotificationConfiguration");
      assert.deepEqual(found.children, []);
    },
  ],
  [
    "a website is NoSuchWebsiteConfiguration",
    async ({ ask }) => {
      assertError(await ask("GET", "?website"), 404, "NoSuchWebsiteConfiguration");
    },
  ],
);
