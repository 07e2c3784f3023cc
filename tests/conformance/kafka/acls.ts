// ACLs, which are the topic rules of roles.
import assert from "node:assert/strict";
import { ERROR_CODES } from "../../../services/pulse/src/kafka/protocol/error-codes.ts";
import {
  createAcls,
  deleteAcls,
  describeAcls,
  saslAuthenticate,
  saslHandshake,
} from "../../../services/pulse/src/kafka/protocol/messages/index.ts";
import type { KafkaClient } from "../../../services/pulse/test/kafka/client.ts";
import { casesOf, type Case, type Scene } from "./case.ts";

/** A user who is not an operator; the stage must know it. */
export const tenantUser = { name: "tenant-user", password: "of a tenant", tenant: "acme" };

// Numbers of `ResourceType`, `PatternType`, `AclPermissionType` and `AclOperation`.
const any = 1;
const [topicType, groupType, clusterType, idType] = [2, 3, 4, 5];
const [match, literal, prefixed] = [2, 3, 4];
const [deny, allowed] = [2, 3];
const [all, read, write, create, remove, alter, describe, clusterAction] = [2, 3, 4, 5, 6, 7, 8, 9];
const [describeConfigs, alterConfigs] = [10, 11];
const manage = [create, remove, alter, alterConfigs];

type Acl = Parameters<typeof createAcls.request.write>[1]["creations"][number];
type Filter = Parameters<typeof describeAcls.request.write>[1];

const everything: Filter = {
  resourceType: any,
  resourceName: null,
  patternType: any,
  principal: null,
  host: null,
  operation: any,
  permissionType: any,
};

const unknownFilters: Partial<Filter>[] = [
  { resourceType: 0 },
  { patternType: 0 },
  { operation: 0 },
  { permissionType: 0 },
];

/** ACLs that allow operations of a topic. */
function allow(
  principal: string,
  resourceName: string,
  operations: readonly number[],
  patternType = literal,
): Acl[] {
  return operations.map((operation) => ({
    resourceType: topicType,
    resourceName,
    patternType,
    principal,
    host: "*",
    operation,
    permissionType: allowed,
  }));
}

/** Creates ACLs in the version of the run; returns the error codes. */
async function grant({ client, version }: Scene, ...creations: Acl[]): Promise<number[]> {
  const { results } = await client.ask(createAcls, version, { creations });
  return results.map(({ errorCode }) => errorCode);
}

/** Creates what a case of another request needs. */
async function prepare({ client }: Scene, ...creations: Acl[]): Promise<void> {
  const { results } = await client.ask(createAcls, 3, { creations });
  for (const { errorCode, errorMessage } of results) assert.equal(errorCode, 0, `${errorMessage}`);
}

/** Lists the ACLs that a filter selects, as `pattern name: operations`, sorted. */
async function select(client: KafkaClient, version: number, filter: Partial<Filter>) {
  const { errorCode, resources } = await client.ask(describeAcls, version, {
    ...everything,
    ...filter,
  });
  assert.equal(errorCode, 0);
  return resources
    .map(({ patternType, resourceName, acls }) => {
      const operations = acls.map(({ operation }) => operation);
      return `${patternType} ${resourceName}: ${operations.join(" ")}`;
    })
    .sort();
}

/** As `select`, for all ACLs of a principal. */
function listOwn({ client }: Scene, principal: string) {
  return select(client, 3, { principal });
}

/** Deletes in the version of the run; returns an answer for each filter. */
async function drop({ client, version }: Scene, ...filters: Partial<Filter>[]) {
  const body = { filters: filters.map((filter) => ({ ...everything, ...filter })) };
  return (await client.ask(deleteAcls, version, body)).filterResults;
}

/** A connection of a user who is not an operator. */
async function connectTenantUser({ stage }: Scene): Promise<KafkaClient> {
  const client = await stage.connect();
  await client.ask(saslHandshake, 1, { mechanism: "PLAIN" });
  const authBytes = Buffer.from(`\0${tenantUser.name}\0${tenantUser.password}`);
  assert.equal((await client.ask(saslAuthenticate, 2, { authBytes })).errorCode, 0);
  return client;
}

function createPrincipal({ createName }: Scene): string {
  return `Role:${createName("role")}`;
}

const describing = casesOf(
  "DescribeAcls",
  [
    [1, 3],
    "names the ACLs by their resource, each with principal, host, operation and permission",
    async (scene) => {
      const { client, version } = scene;
      const principal = createPrincipal(scene);
      const [one, other] = [scene.createName("topic"), scene.createName("prefix.") + "."];
      await prepare(scene, ...allow(principal, one, [write, read]));
      await prepare(scene, ...allow(principal, other, manage, prefixed));
      const answer = await client.ask(describeAcls, version, { ...everything, principal });
      assert.equal(answer.throttleTimeMs, 0);
      assert.equal(answer.errorCode, 0);
      assert.equal(answer.errorMessage, null);
      const acl = { principal, host: "*", permissionType: allowed };
      assert.deepEqual(answer.resources, [
        {
          resourceType: topicType,
          resourceName: one,
          patternType: literal,
          acls: [write, read].map((operation) => ({ ...acl, operation })),
        },
        {
          resourceType: topicType,
          resourceName: other,
          patternType: prefixed,
          acls: manage.map((operation) => ({ ...acl, operation })),
        },
      ]);
    },
  ],
  [
    [1, 3],
    "selects by type, name, pattern, principal, host, operation and permission",
    async (scene) => {
      const { client, version } = scene;
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      await prepare(scene, ...allow(principal, name, [write, read]));
      await prepare(scene, ...allow(principal, "*", [read]));
      await prepare(scene, ...allow(principal, `${name}.`, [write], prefixed));
      const [toName, toAll, toPrefix] = [`3 ${name}: 4 3`, "3 *: 3", `4 ${name}.: 4`];
      const expected: [Partial<Filter>, string[]][] = [
        [{ resourceType: topicType }, [toAll, toName, toPrefix]],
        [{ resourceType: groupType }, []],
        [{ resourceName: name }, [toName]],
        [{ patternType: literal }, [toAll, toName]],
        [{ patternType: prefixed }, [toPrefix]],
        [{ patternType: prefixed, resourceName: name }, []],
        [{ host: "*" }, [toAll, toName, toPrefix]],
        [{ host: "192.0.2.1" }, []],
        [{ operation: write }, [`3 ${name}: 4`, toPrefix]],
        [{ operation: create }, []],
        [{ permissionType: allowed }, [toAll, toName, toPrefix]],
        [{ permissionType: deny }, []],
        [{ principal: `${principal}x` }, []],
      ];
      for (const [filter, selected] of expected) {
        const found = await select(client, version, { principal, ...filter });
        assert.deepEqual(found, selected, JSON.stringify(filter));
      }
    },
  ],
  [
    [1, 3],
    "MATCH selects the names, prefixes and * that cover a topic",
    async (scene) => {
      const { client, version } = scene;
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      for (const covering of [`${name}.a`, `${name}.b`, "*"]) {
        await prepare(scene, ...allow(principal, covering, [read]));
      }
      await prepare(scene, ...allow(principal, `${name}.`, [read], prefixed));
      const filter = { principal, patternType: match };
      assert.deepEqual(
        await select(client, version, { ...filter, resourceName: `${name}.a` }),
        ["3 *: 3", `3 ${name}.a: 3`, `4 ${name}.: 3`].sort(),
      );
      assert.deepEqual(await select(client, version, { ...filter, resourceName: name }), [
        "3 *: 3",
      ]);
    },
  ],
  [
    [1, 3],
    "INVALID_REQUEST for a filter with an unknown value",
    async ({ client, version }) => {
      for (const unknown of unknownFilters) {
        const filter = { ...everything, ...unknown };
        const { errorCode, resources } = await client.ask(describeAcls, version, filter);
        assert.equal(errorCode, ERROR_CODES.invalidRequest, JSON.stringify(unknown));
        assert.deepEqual(resources, []);
      }
    },
  ],
  [
    [1, 3],
    "CLUSTER_AUTHORIZATION_FAILED for users of a tenant, who see none",
    async (scene) => {
      await prepare(scene, ...allow(createPrincipal(scene), "*", [read]));
      const client = await connectTenantUser(scene);
      for (const filter of [everything, { ...everything, operation: 0 }]) {
        const { errorCode, resources } = await client.ask(describeAcls, scene.version, filter);
        assert.equal(errorCode, ERROR_CODES.clusterAuthorizationFailed);
        assert.deepEqual(resources, []);
      }
    },
  ],
);

const creating = casesOf(
  "CreateAcls",
  [
    [1, 3],
    "allows roles to use topics by name, by prefix, and all; DESCRIBE comes with them",
    async (scene) => {
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      const codes = await grant(
        scene,
        ...allow(principal, name, [write, describe, describeConfigs]),
        ...allow(principal, `${name}.`, manage, prefixed),
        ...allow(principal, "*", [read]),
      );
      assert.deepEqual(codes, Array(8).fill(0));
      assert.deepEqual(await listOwn(scene, principal), [
        "3 *: 3",
        `3 ${name}: 4`,
        `4 ${name}.: 5 6 7 11`,
      ]);
    },
  ],
  [
    [1, 3],
    "ALL is an ACL of its own, beside those before",
    async (scene) => {
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      assert.deepEqual(await grant(scene, ...allow(principal, name, [read])), [0]);
      assert.deepEqual(await grant(scene, ...allow(principal, name, [all])), [0]);
      const resource = await listOwn(scene, principal);
      assert.equal(resource.length, 1);
      const operations = resource[0]!.slice(`3 ${name}: `.length).split(" ").map(Number);
      assert.deepEqual(new Set(operations), new Set([read, all]));
      assert.equal(operations.length, 2);
    },
  ],
  [
    [1, 3],
    "changes nothing for what is there already, also DESCRIBE",
    async (scene) => {
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      for (const operation of [read, read, describe, describeConfigs]) {
        assert.deepEqual(await grant(scene, ...allow(principal, name, [operation])), [0]);
      }
      assert.deepEqual(await listOwn(scene, principal), [`3 ${name}: 3`]);
    },
  ],
  [
    [1, 3],
    "keeps the rules of all who create at the same time",
    async (scene) => {
      const principal = createPrincipal(scene);
      const names = Array.from({ length: 10 }, () => scene.createName("topic"));
      const clients = await Promise.all(names.map(() => scene.stage.connect()));
      const codes = await Promise.all(
        names.map((name, index) =>
          grant({ ...scene, client: clients[index]! }, ...allow(principal, name, [read])),
        ),
      );
      assert.deepEqual(codes.flat(), Array(10).fill(0));
      const expected = names.map((name) => `3 ${name}: 3`).sort();
      assert.deepEqual(await listOwn(scene, principal), expected);
    },
  ],
  [
    [1, 3],
    "INVALID_REQUEST for each one that topic rules cannot express, and for no other",
    async (scene) => {
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      const good = allow(principal, name, [read])[0]!;
      const refused: Partial<Acl>[] = [
        { permissionType: deny },
        { permissionType: any },
        { host: "192.0.2.1" },
        ...[any, groupType, clusterType, idType].map((resourceType) => ({ resourceType })),
        ...["User:alice", "Role:", "Role:Not A Role", ""].map((other) => ({ principal: other })),
        ...[any, match, 0].map((patternType) => ({ patternType })),
        { patternType: prefixed, resourceName: "ab" },
        { patternType: prefixed, resourceName: "a.*." },
        { resourceName: "" },
        { resourceName: "a b" },
        ...[0, any, clusterAction].map((operation) => ({ operation })),
        { operation: create, resourceName: `${name}.created` },
        { operation: describe, resourceName: `${name}.described` },
      ];
      const results: number[] = [];
      for (const changes of refused) results.push(...(await grant(scene, { ...good, ...changes })));
      const wrong = refused.filter((_, index) => results[index] !== ERROR_CODES.invalidRequest);
      assert.deepEqual(wrong, []);
      assert.deepEqual(await listOwn(scene, principal), []);
      assert.deepEqual(await grant(scene, { ...good, host: "192.0.2.1" }, good), [
        ERROR_CODES.invalidRequest,
        0,
      ]);
      assert.deepEqual(await listOwn(scene, principal), [`3 ${name}: 3`]);
    },
  ],
  [
    [1, 3],
    "INVALID_REQUEST for more than 100 resources of a role",
    async (scene) => {
      const principal = createPrincipal(scene);
      const acls = Array.from({ length: 101 }, (_, index) =>
        allow(principal, `many.${index}`, [read]),
      );
      const codes = await grant(scene, ...acls.flat());
      assert.deepEqual(codes, [...Array<number>(100).fill(0), ERROR_CODES.invalidRequest]);
      assert.equal((await listOwn(scene, principal)).length, 100);
    },
  ],
  [
    [1, 3],
    "CLUSTER_AUTHORIZATION_FAILED for users of a tenant, and nothing is created",
    async (scene) => {
      const principal = createPrincipal(scene);
      const client = await connectTenantUser(scene);
      const codes = await grant({ ...scene, client }, ...allow(principal, "*", [read, write]));
      const refusal = ERROR_CODES.clusterAuthorizationFailed;
      assert.deepEqual(codes, [refusal, refusal]);
      assert.deepEqual(await listOwn(scene, principal), []);
    },
  ],
);

const deleting = casesOf(
  "DeleteAcls",
  [
    [1, 3],
    "names and deletes what a filter selects, and nothing else",
    async (scene) => {
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      await prepare(scene, ...allow(principal, name, [write, read]));
      await prepare(scene, ...allow(principal, `${name}.`, manage, prefixed));
      const [deleted] = await drop(scene, { principal, operation: write });
      const fine = { errorCode: 0, errorMessage: null };
      assert.deepEqual(deleted, {
        ...fine,
        matchingAcls: allow(principal, name, [write]).map((acl) => ({ ...fine, ...acl })),
      });
      assert.deepEqual(await listOwn(scene, principal), [`3 ${name}: 3`, `4 ${name}.: 5 6 7 11`]);
      const [rest] = await drop(scene, { principal });
      assert.deepEqual(
        rest!.matchingAcls.map(({ operation }) => operation),
        [read, ...manage],
      );
      assert.deepEqual(await listOwn(scene, principal), []);
    },
  ],
  [
    [1, 3],
    "takes back with ALL what was created with it",
    async (scene) => {
      const principal = createPrincipal(scene);
      await prepare(scene, ...allow(principal, "*", [all]));
      const [deleted] = await drop(scene, allow(principal, "*", [all])[0]!);
      assert.equal(deleted!.errorCode, 0);
      assert.deepEqual(
        deleted!.matchingAcls.map(({ operation }) => operation),
        [all],
      );
      assert.deepEqual(await listOwn(scene, principal), []);
    },
  ],
  [
    [1, 3],
    "answers without an ACL for a filter that selects none",
    async (scene) => {
      const nobody = { principal: createPrincipal(scene) };
      const results = await drop(scene, nobody, { resourceType: groupType });
      const nothing = { errorCode: 0, errorMessage: null, matchingAcls: [] };
      assert.deepEqual(results, [nothing, nothing]);
    },
  ],
  [
    [1, 3],
    "INVALID_REQUEST for a part of CREATE, DELETE, ALTER and ALTER_CONFIGS, and for unknown values; other filters go on",
    async (scene) => {
      const principal = createPrincipal(scene);
      const name = scene.createName("topic");
      await prepare(scene, ...allow(principal, name, [read, ...manage]));
      const parts = manage.map((operation) => ({ operation }));
      const refused = [...parts, ...unknownFilters].map((part) => ({ principal, ...part }));
      const results = await drop(scene, ...refused, { principal, operation: read });
      const last = results.pop()!;
      for (const { errorCode, matchingAcls } of results) {
        assert.equal(errorCode, ERROR_CODES.invalidRequest);
        assert.deepEqual(matchingAcls, []);
      }
      assert.equal(results.length, refused.length);
      assert.equal(last.errorCode, 0);
      assert.equal(last.matchingAcls.length, 1);
      assert.deepEqual(await listOwn(scene, principal), [`3 ${name}: 5 6 7 11`]);
    },
  ],
  [
    [1, 3],
    "CLUSTER_AUTHORIZATION_FAILED for users of a tenant, and nothing is deleted",
    async (scene) => {
      const principal = createPrincipal(scene);
      await prepare(scene, ...allow(principal, "*", [read]));
      const client = await connectTenantUser(scene);
      const results = await drop({ ...scene, client }, { principal }, { operation: 0 });
      assert.equal(results.length, 2);
      for (const { errorCode, matchingAcls } of results) {
        assert.equal(errorCode, ERROR_CODES.clusterAuthorizationFailed);
        assert.deepEqual(matchingAcls, []);
      }
      assert.deepEqual(await listOwn(scene, principal), ["3 *: 3"]);
    },
  ],
);

export const aclCases: readonly Case[] = [...describing, ...creating, ...deleting];
