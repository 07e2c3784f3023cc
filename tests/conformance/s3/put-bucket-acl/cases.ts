// PutBucketAcl and GetBucketAcl: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutBucketAcl.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult } from "../case.ts";

const toGrant = (grantee: string) =>
  `<Grant><Grantee>${grantee}</Grantee><Permission>READ</Permission></Grant>`;
const toPolicy = (owner: string, grants: string) =>
  `<AccessControlPolicy>${owner}<AccessControlList>${grants}</AccessControlList></AccessControlPolicy>`;

export const cases = casesOf(
  "PutBucketAcl",
  [
    "without anything said the owner alone has full control",
    async ({ ask }) => {
      const found = readResult(await ask("GET", "?acl"), "AccessControlPolicy");
      assert.deepEqual(found.texts("AccessControlList/Grant/Permission"), ["FULL_CONTROL"]);
      assert.equal(found.get("AccessControlList/Grant/Grantee/ID"), found.get("Owner/ID"));
    },
  ],
  [
    "public-read lets everyone list, and neither read objects nor put them",
    async ({ ask, put }) => {
      await put("key", "x");
      assertEmpty(await ask("PUT", "?acl", { headers: { "x-amz-acl": "public-read" } }), 200);
      const as = "nobody";
      assert.equal((await ask("GET", "", { as })).status, 200);
      assertError(await ask("GET", "/key", { as }), 403, "AccessDenied");
      assertError(await ask("PUT", "/other", { as, body: "x" }), 403, "AccessDenied");
    },
  ],
  [
    "public-read-write lets everyone put and delete",
    async ({ ask, must }) => {
      await must("PUT", "?acl", { headers: { "x-amz-acl": "public-read-write" } });
      const as = "nobody";
      assertEmpty(await ask("PUT", "/key", { as, body: "x" }), 200);
      assertEmpty(await ask("DELETE", "/key", { as }), 204);
    },
  ],
  [
    "public-read-write lets everyone delete several at once",
    async ({ ask, must, put }) => {
      await put("key", "x");
      await must("PUT", "?acl", { headers: { "x-amz-acl": "public-read-write" } });
      const body = "<Delete><Object><Key>key</Key></Object></Delete>";
      const answer = await ask("POST", "?delete", { as: "nobody", body });
      assert.deepEqual(answer.document.texts("Deleted/Key"), ["key"]);
    },
  ],
  [
    "public-read-write does not let everyone change the bucket",
    async ({ ask, must }) => {
      await must("PUT", "?acl", { headers: { "x-amz-acl": "public-read-write" } });
      const as = "nobody";
      const headers = { "x-amz-acl": "private" };
      assertError(await ask("PUT", "?acl", { as, headers }), 403, "AccessDenied");
      assertError(await ask("DELETE", "", { as }), 403, "AccessDenied");
      assertError(await ask("GET", "?policy", { as }), 403, "AccessDenied");
    },
  ],
  [
    "private closes the bucket again",
    async ({ ask, must }) => {
      await must("PUT", "?acl", { headers: { "x-amz-acl": "public-read" } });
      await must("PUT", "?acl", { headers: { "x-amz-acl": "private" } });
      assertError(await ask("GET", "", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "log-delivery-write grants to the group of log delivery",
    async ({ ask, must }) => {
      await must("PUT", "?acl", { headers: { "x-amz-acl": "log-delivery-write" } });
      const { document } = await ask("GET", "?acl");
      assert.deepEqual(document.texts("AccessControlList/Grant/Permission").slice(1), [
        "WRITE",
        "READ_ACP",
      ]);
      assertError(await ask("GET", "", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "READ_ACP lets everyone read the list",
    async ({ ask, must }) => {
      const uri = 'uri="http://acs.amazonaws.com/groups/global/AllUsers"';
      await must("PUT", "?acl", { headers: { "x-amz-grant-read-acp": uri } });
      assert.equal((await ask("GET", "?acl", { as: "nobody" })).status, 200);
    },
  ],
  [
    "InvalidArgument for a canned list that is not known",
    async ({ ask }) => {
      const headers = { "x-amz-acl": "everybody" };
      assertError(await ask("PUT", "?acl", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "MissingSecurityHeader for a request without a list",
    async ({ ask }) => assertError(await ask("PUT", "?acl"), 400, "MissingSecurityHeader"),
  ],
  [
    "MalformedACLError for what is no list",
    async ({ ask }) => {
      assertError(await ask("PUT", "?acl", { body: "<Other/>" }), 400, "MalformedACLError");
    },
  ],
  [
    "names grantees as their owners do: the account and users that there are",
    async ({ ask, must, createUser }) => {
      const { user } = await createUser();
      const owner = (await ask("GET", "?acl")).document;
      const grant = `id="${owner.get("Owner/ID")}", id=${user}`;
      await must("PUT", "?acl", { headers: { "x-amz-grant-read": grant } });
      const names = (await ask("GET", "?acl")).document.texts(
        "AccessControlList/Grant/Grantee/DisplayName",
      );
      assert.deepEqual(names, [owner.get("Owner/DisplayName"), user]);
    },
  ],
  [
    "InvalidArgument for an id that nobody has, in headers and documents",
    async ({ ask }) => {
      const headers = { "x-amz-grant-read": "id=nobody-has-it" };
      const first = await ask("PUT", "?acl", { headers });
      assertError(first, 400, "InvalidArgument");
      assert.equal(first.document.get("ArgumentName"), "CanonicalUser/ID");
      const body = toPolicy("", toGrant("<ID>nobody-has-it</ID>"));
      assertError(await ask("PUT", "?acl", { body }), 400, "InvalidArgument");
    },
  ],
  [
    "UnresolvableGrantByEmailAddress for addresses of mail, in headers and documents",
    async ({ ask }) => {
      const headers = { "x-amz-grant-read": 'emailAddress="a@example.com"' };
      const code = "UnresolvableGrantByEmailAddress";
      assertError(await ask("PUT", "?acl", { headers }), 400, code);
      const body = toPolicy("", toGrant("<EmailAddress>a@example.com</EmailAddress>"));
      assertError(await ask("PUT", "?acl", { body }), 400, code);
    },
  ],
  [
    "AccessDenied for a document that names another owner",
    async ({ ask }) => {
      const body = toPolicy("<Owner><ID>another</ID></Owner>", "");
      assertError(await ask("PUT", "?acl", { body }), 403, "AccessDenied");
    },
  ],
  [
    "a list without grants leaves none",
    async ({ ask }) => {
      assertEmpty(await ask("PUT", "?acl", { body: toPolicy("", "") }), 200);
      const found = readResult(await ask("GET", "?acl"), "AccessControlPolicy");
      assert.deepEqual(found.all("AccessControlList/Grant"), []);
    },
  ],
);
