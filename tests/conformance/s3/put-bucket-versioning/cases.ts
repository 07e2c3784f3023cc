// PutBucketVersioning and GetBucketVersioning: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketVersioning.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

const toBody = (inner: string) =>
  `<VersioningConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/">${inner}</VersioningConfiguration>`;

export const cases = casesOf(
  "PutBucketVersioning",
  [
    "a new bucket has no status",
    async ({ ask }) => {
      const found = readResult(await ask("GET", "?versioning"), "VersioningConfiguration");
      assert.equal(found.children.length, 0);
    },
  ],
  [
    "keeps Enabled and Suspended",
    async ({ ask }) => {
      for (const status of ["Enabled", "Suspended", "Enabled"]) {
        const body = toBody(`<Status>${status}</Status>`);
        assertEmpty(await ask("PUT", "?versioning", { body }), 200);
        assert.equal((await ask("GET", "?versioning")).document.get("Status"), status);
      }
    },
  ],
  [
    "IllegalVersioningConfigurationException without a status",
    async ({ ask }) => {
      const answer = await ask("PUT", "?versioning", { body: toBody("") });
      assertError(answer, 400, "IllegalVersioningConfigurationException");
    },
  ],
  [
    "MalformedXML for a status that is none, and for what is no document",
    async ({ ask }) => {
      for (const body of [toBody("<Status>On</Status>"), "hello", "<Other/>"]) {
        assertError(await ask("PUT", "?versioning", { body }), 400, "MalformedXML");
      }
    },
  ],
  [
    "NotImplemented for deletion with a second factor",
    async ({ ask }) => {
      const body = toBody("<Status>Enabled</Status><MfaDelete>Enabled</MfaDelete>");
      assertError(await ask("PUT", "?versioning", { body }), 501, "NotImplemented");
    },
  ],
  [
    "InvalidBucketState for suspending a bucket with object lock",
    async ({ client, createBucket }) => {
      const name = await createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
      const body = toBody("<Status>Suspended</Status>");
      const answer = await client.send("PUT", `/${name}?versioning`, { body });
      assertError(answer, 409, "InvalidBucketState");
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ ask }) => {
      const body = toBody("<Status>Enabled</Status>");
      assertError(await ask("PUT", "?versioning", { body, as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "takes a second factor that is not asked for, and MalformedXML for one that is neither",
    async ({ ask }) => {
      const put = (factor: string) =>
        ask("PUT", "?versioning", {
          body: toBody(`<Status>Enabled</Status><MfaDelete>${factor}</MfaDelete>`),
        });
      assertEmpty(await put("Disabled"), 200);
      assertError(await put("Maybe"), 400, "MalformedXML");
    },
  ],
);
