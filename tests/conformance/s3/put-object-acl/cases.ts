// PutObjectAcl and GetObjectAcl: https://docs.aws.amazon.com/AmazonS3/latest/API/API_PutObjectAcl.html
import assert from "node:assert/strict";
import { assertEmpty, assertError, casesOf, readResult, type Scene } from "../case.ts";

const ALL_USERS = "http://acs.amazonaws.com/groups/global/AllUsers";
const AUTHENTICATED = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";

async function readGrants({ ask }: Scene): Promise<string[]> {
  const { document } = await ask("GET", "/key?acl");
  const owner = document.get("Owner/ID");
  return document.all("AccessControlList/Grant").map((grant) => {
    const id = grant.get("Grantee/ID");
    const who = id === owner ? "owner" : (id ?? grant.get("Grantee/URI")!.split("/").at(-1));
    return `${who} ${grant.get("Permission")}`;
  });
}

function toBody(owner: string, grants: string): string {
  return `<AccessControlPolicy xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Owner><ID>${owner}</ID></Owner><AccessControlList>${grants}</AccessControlList></AccessControlPolicy>`;
}

function toGrant(type: string, grantee: string, permission: string): string {
  return `<Grant><Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="${type}">${grantee}</Grantee><Permission>${permission}</Permission></Grant>`;
}

const CANNED = {
  private: ["owner FULL_CONTROL"],
  "public-read": ["owner FULL_CONTROL", "AllUsers READ"],
  "public-read-write": ["owner FULL_CONTROL", "AllUsers READ", "AllUsers WRITE"],
  "authenticated-read": ["owner FULL_CONTROL", "AuthenticatedUsers READ"],
  "bucket-owner-full-control": ["owner FULL_CONTROL"],
};

export const cases = casesOf(
  "PutObjectAcl",
  [
    "without anything said the owner alone has full control",
    async (scene) => {
      await scene.put("key", "x");
      const found = readResult(await scene.ask("GET", "/key?acl"), "AccessControlPolicy");
      const grantee = found.all("AccessControlList/Grant/Grantee")[0]!;
      assert.match(grantee.attributes, /xsi:type="CanonicalUser"/);
      assert.equal(found.get("Owner/ID"), grantee.get("ID"));
      assert.deepEqual(await readGrants(scene), ["owner FULL_CONTROL"]);
    },
  ],
  [
    "expands canned lists",
    async (scene) => {
      await scene.put("key", "x");
      for (const [name, grants] of Object.entries(CANNED)) {
        const headers = { "x-amz-acl": name };
        assertEmpty(await scene.ask("PUT", "/key?acl", { headers }), 200);
        assert.deepEqual(await readGrants(scene), grants, name);
      }
    },
  ],
  [
    "a canned list of PutObject is the object's",
    async (scene) => {
      await scene.put("key", "x", { "x-amz-acl": "public-read" });
      assert.deepEqual(await readGrants(scene), CANNED["public-read"]);
    },
  ],
  [
    "public-read lets everyone read the object and nothing else",
    async ({ ask, put }) => {
      await put("key", "x", { "x-amz-acl": "public-read" });
      assert.equal((await ask("GET", "/key", { as: "nobody" })).text, "x");
      assertEmpty(await ask("HEAD", "/key", { as: "nobody" }), 200);
      assertError(await ask("GET", "/key?acl", { as: "nobody" }), 403, "AccessDenied");
      assertError(await ask("DELETE", "/key", { as: "nobody" }), 403, "AccessDenied");
      assertError(await ask("PUT", "/key", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "authenticated-read lets users with keys read, nobody else",
    async ({ ask, createUser, put }) => {
      await put("key", "x", { "x-amz-acl": "authenticated-read" });
      const as = await createUser();
      assert.equal((await ask("GET", "/key", { as })).text, "x");
      assertError(await ask("GET", "/key", { as: "nobody" }), 403, "AccessDenied");
    },
  ],
  [
    "takes grants in headers",
    async (scene) => {
      await scene.put("key", "x");
      const headers = {
        "x-amz-grant-read": `uri="${ALL_USERS}"`,
        "x-amz-grant-read-acp": `uri="${AUTHENTICATED}"`,
      };
      assertEmpty(await scene.ask("PUT", "/key?acl", { headers }), 200);
      assert.deepEqual(await readGrants(scene), ["AllUsers READ", "AuthenticatedUsers READ_ACP"]);
    },
  ],
  [
    "takes a document, and gives it back",
    async (scene) => {
      await scene.put("key", "x");
      const owner = (await scene.ask("GET", "/key?acl")).document.get("Owner/ID")!;
      const body = toBody(
        owner,
        toGrant("CanonicalUser", `<ID>${owner}</ID>`, "FULL_CONTROL") +
          toGrant("Group", `<URI>${ALL_USERS}</URI>`, "READ_ACP"),
      );
      assertEmpty(await scene.ask("PUT", "/key?acl", { body }), 200);
      assert.deepEqual(await readGrants(scene), ["owner FULL_CONTROL", "AllUsers READ_ACP"]);
      assert.equal((await scene.ask("GET", "/key?acl", { as: "nobody" })).status, 200);
    },
  ],
  [
    "takes the document that it gave",
    async (scene) => {
      await scene.put("key", "x", { "x-amz-acl": "public-read" });
      const body = (await scene.ask("GET", "/key?acl")).text;
      assertEmpty(await scene.ask("PUT", "/key?acl", { body }), 200);
      assert.deepEqual(await readGrants(scene), CANNED["public-read"]);
    },
  ],
  [
    "InvalidArgument for a canned list that is not known",
    async ({ ask, put }) => {
      await put("key", "x");
      const headers = { "x-amz-acl": "everybody" };
      assertError(await ask("PUT", "/key?acl", { headers }), 400, "InvalidArgument");
      assertError(await ask("PUT", "/key", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidArgument for a group that is not known",
    async ({ ask, put }) => {
      await put("key", "x");
      const headers = { "x-amz-grant-read": 'uri="http://example.com/group"' };
      assertError(await ask("PUT", "/key?acl", { headers }), 400, "InvalidArgument");
    },
  ],
  [
    "InvalidRequest for a canned list beside grants",
    async ({ ask, put }) => {
      await put("key", "x");
      const headers = { "x-amz-acl": "private", "x-amz-grant-read": `uri="${ALL_USERS}"` };
      assertError(await ask("PUT", "/key?acl", { headers }), 400, "InvalidRequest");
    },
  ],
  [
    "UnexpectedContent for a list in headers beside one in the body",
    async (scene) => {
      await scene.put("key", "x");
      const body = toBody("owner", "");
      const headers = { "x-amz-acl": "private" };
      const answer = await scene.ask("PUT", "/key?acl", { headers, body });
      assertError(answer, 400, "UnexpectedContent");
    },
  ],
  [
    "MissingSecurityHeader for a request without a list",
    async ({ ask, put }) => {
      await put("key", "x");
      assertError(await ask("PUT", "/key?acl"), 400, "MissingSecurityHeader");
    },
  ],
  [
    "MalformedACLError for what is no list",
    async ({ ask, put }) => {
      await put("key", "x");
      const bodies = [
        "x",
        "<AccessControlPolicy/>",
        toBody("a", toGrant("Group", `<URI>${ALL_USERS}</URI>`, "ALL")),
        toBody("a", toGrant("Group", "", "READ")),
      ];
      for (const body of bodies) {
        assertError(await ask("PUT", "/key?acl", { body }), 400, "MalformedACLError");
      }
    },
  ],
  [
    "NoSuchKey for an object that is not there",
    async ({ ask }) => {
      assertError(await ask("GET", "/key?acl"), 404, "NoSuchKey");
      const headers = { "x-amz-acl": "private" };
      assertError(await ask("PUT", "/key?acl", { headers }), 404, "NoSuchKey");
    },
  ],
  [
    "a permission to put objects is none to put lists with them",
    async ({ ask, bucket, createUser }) => {
      const Resource = `arn:aws:s3:::${bucket}/*`;
      const as = await createUser({ Effect: "Allow", Action: "s3:PutObject", Resource });
      const headers = { "x-amz-acl": "public-read" };
      assertError(await ask("PUT", "/key", { as, headers }), 403, "AccessDenied");
    },
  ],
);
