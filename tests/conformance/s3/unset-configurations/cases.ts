// Configurations that clients read from every bucket: the responses of S3 if they are not set.
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

const toStatus = (status: string) =>
  `<AccelerateConfiguration><Status>${status}</Status></AccelerateConfiguration>`;
const toPayer = (payer: string) =>
  `<RequestPaymentConfiguration><Payer>${payer}</Payer></RequestPaymentConfiguration>`;

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
  [
    "what holds anyway may be put: no logging, no acceleration, no replication, the owner pays",
    async ({ ask }) => {
      const puts = [
        ["?logging", "<BucketLoggingStatus/>"],
        ["?accelerate", toStatus("Suspended")],
        ["?requestPayment", toPayer("BucketOwner")],
      ] as const;
      for (const [target, body] of puts) assertEmpty(await ask("PUT", target, { body }), 200);
      assertEmpty(await ask("DELETE", "?replication"), 204);
    },
  ],
  [
    "NotImplemented for what would have to change something, MalformedXML for what is none",
    async ({ ask }) => {
      const puts = [
        ["?accelerate", toStatus("Enabled")],
        ["?requestPayment", toPayer("Requester")],
      ] as const;
      for (const [name, body] of puts) {
        assertError(await ask("PUT", name, { body }), 501, "NotImplemented");
      }
      for (const [name, body] of [
        ["?accelerate", toStatus("Fast")],
        ["?requestPayment", toPayer("Nobody")],
        ["?replication", "<ReplicationConfiguration/>"],
      ] as const) {
        assertError(await ask("PUT", name, { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "there is no analytics, inventory, metrics or tiering configuration, neither by id nor in lists",
    async ({ ask }) => {
      const lists = {
        analytics: "ListBucketAnalyticsConfigurationResult",
        "intelligent-tiering": "ListBucketIntelligentTieringConfigurationsOutput",
        inventory: "ListInventoryConfigurationsResult",
        metrics: "ListMetricsConfigurationsResult",
      };
      for (const [name, root] of Object.entries(lists)) {
        const list = readResult(await ask("GET", `?${name}`), root);
        assert.deepEqual(
          list.children.map((child) => [child.name, child.text]),
          [["IsTruncated", "false"]],
        );
        for (const method of ["GET", "DELETE"])
          assertError(await ask(method, `?${name}&id=one`), 404, "NoSuchConfiguration");
        assertError(await ask("DELETE", `?${name}`), 400, "InvalidArgument");
      }
    },
  ],
  [
    "acceleration that was suspended is told as suspended",
    async ({ ask, must }) => {
      await must("PUT", "?accelerate", { body: toStatus("Suspended") });
      assert.equal((await ask("GET", "?accelerate")).document.get("Status"), "Suspended");
    },
  ],
);
