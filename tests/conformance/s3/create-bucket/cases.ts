// CreateBucket: https://docs.aws.amazon.com/AmazonS3/latest/API/API_CreateBucket.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, createName, type CaseRow } from "../case.ts";

const toConfiguration = (region: string) =>
  `<CreateBucketConfiguration xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><LocationConstraint>${region}</LocationConstraint></CreateBucketConfiguration>`;

const BAD_NAMES = {
  "shorter than 3 characters": "ab",
  "longer than 63 characters": "a".repeat(64),
  "with capital letters": "Bucket-Name",
  "with an underscore": "bucket_name",
  "that begin with a hyphen": "-bucket",
  "that end with a hyphen": "bucket-",
  "that begin with a dot": ".bucket",
  "that end with a dot": "bucket.",
  "with two dots together": "bucket..name",
  "that are addresses": "192.168.5.4",
  "with a space": "bucket%20name",
  "with letters that are not ASCII": "b%C3%BCcket",
  "with the prefix of punycode": "xn--bucket",
  "with a suffix that is reserved for aliases": "bucket-s3alias",
  "with a hyphen before a dot": "bucket-.name",
  "with a hyphen behind a dot": "bucket.-name",
  "with the prefix sthree-": "sthree-bucket",
  "with the prefix of documentation's examples": "amzn-s3-demo-bucket",
};

export const cases = casesOf(
  "CreateBucket",
  [
    "answers 200 with the bucket as Location",
    async ({ client }) => {
      const name = createName();
      const answer = await client.send("PUT", `/${name}`);
      assertEmpty(answer, 200);
      assert.equal(answer.headers["location"], `/${name}`);
    },
  ],
  [
    "takes a path that ends in a slash",
    async ({ client }) => {
      const name = createName();
      assert.equal((await client.send("PUT", `/${name}/`)).status, 200);
      assert.equal((await client.send("HEAD", `/${name}`)).status, 200);
    },
  ],
  [
    "takes names of 3 to 63 letters, digits, dots and hyphens",
    async ({ client }) => {
      const unique = createName().slice(2, 10);
      const names = [`a${unique}`, unique.padEnd(63, "x"), `a.b-${unique}`, `1.${unique}.2`];
      for (const name of names) {
        assert.equal((await client.send("PUT", `/${name}`)).status, 200, name);
      }
    },
  ],
  ...Object.entries(BAD_NAMES).map(([what, name]): CaseRow => [
    `InvalidBucketName for names ${what}`,
    async ({ client }) => {
      assertError(await client.send("PUT", `/${name}`), 400, "InvalidBucketName");
    },
  ]),
  [
    "200 for one's own bucket in us-east-1, which stays as it is",
    async ({ ask, put, bucket }) => {
      await put("key", "x");
      const again = await ask("PUT");
      assertEmpty(again, 200);
      assert.equal(again.headers["location"], `/${bucket}`);
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
  [
    "BucketAlreadyOwnedByYou for one's own bucket that is to be another than it is",
    async ({ ask, put, bucket }) => {
      await put("key", "x");
      const answer = await ask("PUT", "", { headers: { "x-amz-acl": "public-read" } });
      assertError(answer, 409, "BucketAlreadyOwnedByYou");
      assert.equal(answer.document.get("BucketName"), bucket);
      assert.equal((await ask("GET", "/key")).text, "x");
    },
  ],
  [
    "keeps the region of a configuration",
    async ({ client }) => {
      const name = createName();
      const body = toConfiguration("eu-central-1");
      assert.equal((await client.send("PUT", `/${name}`, { body })).status, 200);
      const { document } = await client.send("GET", `/${name}?location`);
      assert.equal(document.text, "eu-central-1");
      const head = await client.send("HEAD", `/${name}`);
      assert.equal(head.headers["x-amz-bucket-region"], "eu-central-1");
    },
  ],
  [
    "InvalidLocationConstraint for a region that is none",
    async ({ client }) => {
      const body = toConfiguration("no region");
      const answer = await client.send("PUT", `/${createName()}`, { body });
      assertError(answer, 400, "InvalidLocationConstraint");
    },
  ],
  [
    "MalformedXML for a body that is no configuration",
    async ({ client }) => {
      for (const body of ["hello", "<Other/>", "<CreateBucketConfiguration>"]) {
        const answer = await client.send("PUT", `/${createName()}`, { body });
        assertError(answer, 400, "MalformedXML");
      }
    },
  ],
  [
    "gives the bucket the canned ACL of a header",
    async ({ client, createBucket }) => {
      const name = await createBucket({ "x-amz-acl": "public-read" });
      const { document } = await client.send("GET", `/${name}?acl`);
      assert.deepEqual(document.texts("AccessControlList/Grant/Permission"), [
        "FULL_CONTROL",
        "READ",
      ]);
      assert.equal((await client.send("GET", `/${name}`, { as: "nobody" })).status, 200);
    },
  ],
  [
    "InvalidArgument for a canned ACL that is not known, and makes no bucket",
    async ({ client }) => {
      const name = createName();
      const headers = { "x-amz-acl": "everybody" };
      assertError(await client.send("PUT", `/${name}`, { headers }), 400, "InvalidArgument");
      assert.equal((await client.send("HEAD", `/${name}`)).status, 404);
    },
  ],
  [
    "gives the bucket the ownership of a header",
    async ({ client, createBucket }) => {
      const name = await createBucket({ "x-amz-object-ownership": "BucketOwnerEnforced" });
      const { document } = await client.send("GET", `/${name}?ownershipControls`);
      assert.equal(document.get("Rule/ObjectOwnership"), "BucketOwnerEnforced");
    },
  ],
  [
    "InvalidArgument for an ownership that is none",
    async ({ client }) => {
      const headers = { "x-amz-object-ownership": "Mine" };
      const answer = await client.send("PUT", `/${createName()}`, { headers });
      assertError(answer, 400, "InvalidArgument");
    },
  ],
  [
    "refuses an ACL for a bucket that has none by its ownership",
    async ({ client }) => {
      const headers = {
        "x-amz-object-ownership": "BucketOwnerEnforced",
        "x-amz-acl": "public-read",
      };
      const answer = await client.send("PUT", `/${createName()}`, { headers });
      assertError(answer, 400, "InvalidBucketAclWithObjectOwnership");
    },
  ],
  [
    "with object lock versions everything",
    async ({ client, createBucket }) => {
      const name = await createBucket({ "x-amz-bucket-object-lock-enabled": "true" });
      const versioning = await client.send("GET", `/${name}?versioning`);
      assert.equal(versioning.document.get("Status"), "Enabled");
      const lock = await client.send("GET", `/${name}?object-lock`);
      assert.equal(lock.document.get("ObjectLockEnabled"), "Enabled");
    },
  ],
  [
    "AccessDenied without a signature",
    async ({ client }) => {
      const answer = await client.send("PUT", `/${createName()}`, { as: "nobody" });
      assertError(answer, 403, "AccessDenied");
    },
  ],
  [
    "AccessDenied for a user whom no policy allows it",
    async ({ client, createUser }) => {
      const as = await createUser();
      assertError(await client.send("PUT", `/${createName()}`, { as }), 403, "AccessDenied");
    },
  ],
  [
    "AccessDenied for ACL, ownership or object lock without the permissions for those",
    async ({ client, createUser }) => {
      const as = await createUser({ Effect: "Allow", Action: "s3:CreateBucket", Resource: "*" });
      const asked: Record<string, string>[] = [
        { "x-amz-acl": "public-read" },
        { "x-amz-object-ownership": "ObjectWriter" },
        { "x-amz-bucket-object-lock-enabled": "true" },
      ];
      for (const headers of asked) {
        const name = createName();
        assertError(await client.send("PUT", `/${name}`, { as, headers }), 403, "AccessDenied");
        assert.equal((await client.send("HEAD", `/${name}`)).status, 404);
      }
      assert.equal((await client.send("PUT", `/${createName()}`, { as })).status, 200);
    },
  ],
  [
    "is allowed by a user's policy for the names that it lists",
    async ({ client, createUser }) => {
      const name = createName();
      const Resource = `arn:aws:s3:::${name}`;
      const as = await createUser({ Effect: "Allow", Action: "s3:CreateBucket", Resource });
      assert.equal((await client.send("PUT", `/${name}`, { as })).status, 200);
      assertError(await client.send("PUT", `/${createName()}`, { as }), 403, "AccessDenied");
    },
  ],
  [
    "gives the bucket the tags of a configuration",
    async ({ client }) => {
      const name = createName();
      const toBody = (tags: string) =>
        `<CreateBucketConfiguration><Tags>${tags}</Tags></CreateBucketConfiguration>`;
      const tag = "<Tag><Key>team</Key><Value>red</Value></Tag>";
      const twice = await client.send("PUT", `/${name}`, { body: toBody(tag + tag) });
      assertError(twice, 400, "InvalidTag");
      assertEmpty(await client.send("PUT", `/${name}`, { body: toBody(tag) }), 200);
      const { document } = await client.send("GET", `/${name}?tagging`);
      assert.equal(document.get("TagSet/Tag/Key"), "team");
      assert.equal(document.get("TagSet/Tag/Value"), "red");
    },
  ],
  [
    "is allowed by a user's policy for the regions that it names",
    async ({ client, createUser }) => {
      const as = await createUser({
        Effect: "Allow",
        Action: "s3:CreateBucket",
        Resource: "*",
        Condition: { StringEquals: { "s3:LocationConstraint": "eu-central-1" } },
      });
      const send = (body: string) => client.send("PUT", `/${createName()}`, { as, body });
      assertEmpty(await send(toConfiguration("eu-central-1")), 200);
      assertError(await send(toConfiguration("eu-west-1")), 403, "AccessDenied");
      assertError(await send(""), 403, "AccessDenied");
    },
  ],
  [
    "refuses what it would have to ignore: another kind of bucket, unknown elements, a lock that is neither on nor off",
    async ({ client }) => {
      const target = `/${createName()}`;
      const toBody = (inner: string) =>
        `<CreateBucketConfiguration>${inner}</CreateBucketConfiguration>`;
      const directory = toBody("<Bucket><Type>Directory</Type></Bucket>");
      assertError(await client.send("PUT", target, { body: directory }), 501, "NotImplemented");
      assertError(await client.send("PUT", target, { body: toBody("<X/>") }), 400, "MalformedXML");
      const headers = { "x-amz-bucket-object-lock-enabled": "yes" };
      assertError(await client.send("PUT", target, { headers }), 400, "InvalidArgument");
      assertEmpty(await client.send("HEAD", target), 404);
    },
  ],
);
