// Checksums of objects: https://docs.aws.amazon.com/AmazonS3/latest/userguide/checking-object-integrity-upload.html The
// check values of the CRCs are the published ones for "123456789".
import assert from "node:assert/strict";
import { assertError, casesOf, digest, type CaseRow } from "../case.ts";

const BODY = "123456789";

const VALUES = {
  crc32: "y/Q5Jg==",
  crc32c: "4waSgw==",
  crc64nvme: "rosUhgp5mIg=",
  sha1: digest("sha1", BODY),
  sha256: digest("sha256", BODY),
};

const PER_ALGORITHM = Object.entries(VALUES).flatMap(([name, value]): CaseRow[] => {
  const field = `x-amz-checksum-${name}`;
  return [
    [
      `${name} in a header is checked, answered and kept`,
      async ({ ask, put }) => {
        const { headers } = await put("key", BODY, { [field]: value });
        assert.equal(headers[field], value);
        assert.equal(headers["x-amz-checksum-type"], "FULL_OBJECT");
        const mode = { "x-amz-checksum-mode": "ENABLED" };
        assert.equal((await ask("HEAD", "/key", { headers: mode })).headers[field], value);
      },
    ],
    [
      `${name} of other bytes is BadDigest, and nothing is stored`,
      async ({ ask }) => {
        const answer = await ask("PUT", "/key", { body: "other", headers: { [field]: value } });
        assertError(answer, 400, "BadDigest");
        assert.equal((await ask("HEAD", "/key")).status, 404);
      },
    ],
    [
      `${name} that is no checksum is InvalidRequest`,
      async ({ ask }) => {
        for (const bad of ["bad", "", "AAAA"]) {
          const answer = await ask("PUT", "/key", { body: BODY, headers: { [field]: bad } });
          assertError(answer, 400, "InvalidRequest");
        }
      },
    ],
    [
      `${name} in a trailer is checked, answered and kept`,
      async ({ ask }) => {
        const chunks = { pieces: ["1234", "56789"], isSigned: false, trailers: { [field]: value } };
        const put = await ask("PUT", "/key", { chunks });
        assert.equal(put.headers[field], value, put.text);
        const mode = { "x-amz-checksum-mode": "ENABLED" };
        const got = await ask("GET", "/key", { headers: mode });
        assert.equal(`${got.text} ${got.headers[field]}`, `${BODY} ${value}`);
      },
    ],
  ];
});

export const cases = casesOf(
  "Checksums",
  ...PER_ALGORITHM,
  [
    "two of them are InvalidRequest",
    async ({ ask }) => {
      const headers = { "x-amz-checksum-crc32": VALUES.crc32, "x-amz-checksum-sha1": VALUES.sha1 };
      assertError(await ask("PUT", "/key", { body: BODY, headers }), 400, "InvalidRequest");
    },
  ],
  [
    "x-amz-sdk-checksum-algorithm of another algorithm is InvalidRequest",
    async ({ ask }) => {
      const headers = {
        "x-amz-checksum-crc32": VALUES.crc32,
        "x-amz-sdk-checksum-algorithm": "SHA1",
      };
      assertError(await ask("PUT", "/key", { body: BODY, headers }), 400, "InvalidRequest");
    },
  ],
  [
    "x-amz-sdk-checksum-algorithm without a checksum is InvalidRequest",
    async ({ ask }) => {
      const headers = { "x-amz-sdk-checksum-algorithm": "CRC32" };
      assertError(await ask("PUT", "/key", { body: BODY, headers }), 400, "InvalidRequest");
    },
  ],
  [
    "x-amz-sdk-checksum-algorithm of no algorithm is InvalidRequest",
    async ({ ask }) => {
      const headers = {
        "x-amz-checksum-crc32": VALUES.crc32,
        "x-amz-sdk-checksum-algorithm": "MD4",
      };
      assertError(await ask("PUT", "/key", { body: BODY, headers }), 400, "InvalidRequest");
    },
  ],
  [
    "is under its x-store- name as well",
    async ({ put }) => {
      const { headers } = await put("key", BODY, { "x-store-checksum-crc32": VALUES.crc32 });
      assert.equal(headers["x-store-checksum-crc32"], VALUES.crc32);
      assert.equal(headers["x-amz-checksum-crc32"], VALUES.crc32);
    },
  ],
  [
    "is replaced with the object",
    async ({ ask, put }) => {
      await put("key", BODY, { "x-amz-checksum-crc32": VALUES.crc32 });
      await put("key", BODY, { "x-amz-checksum-sha256": VALUES.sha256 });
      const headers = { "x-amz-checksum-mode": "ENABLED" };
      const head = await ask("HEAD", "/key", { headers });
      assert.equal(head.headers["x-amz-checksum-crc32"], undefined);
      assert.equal(head.headers["x-amz-checksum-sha256"], VALUES.sha256);
    },
  ],
);
