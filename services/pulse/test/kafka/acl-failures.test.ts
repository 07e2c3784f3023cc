// Changes of ACLs that fail: the bound of roles, and one of several roles.
import assert from "node:assert/strict";
import { test } from "node:test";
import { PlatformError } from "@platform/kernel/errors";
import type { TopicRule } from "../../src/access/topic-rules.ts";
import type { AclBinding, AclFilter } from "../../src/kafka/acl-bindings.ts";
import { ERROR_CODES } from "../../src/kafka/protocol/error-codes.ts";
import { createAcls, deleteAcls, describeAcls } from "../../src/kafka/protocol/messages/index.ts";
import { KafkaStage } from "./stage.ts";

const [TOPIC, LITERAL, ANY, ALLOW, WRITE] = [2, 3, 1, 3, 4];

function acl(role: string): AclBinding {
  return {
    resourceType: TOPIC,
    resourceName: "a",
    patternType: LITERAL,
    principal: `Role:${role}`,
    host: "*",
    operation: WRITE,
    permissionType: ALLOW,
  };
}

const EVERYTHING: AclFilter = {
  resourceType: ANY,
  resourceName: null,
  patternType: ANY,
  principal: null,
  host: null,
  operation: ANY,
  permissionType: ANY,
};

/** Makes the changes of a role fail, as those of all fail at a bound or with a broken disk. */
function breakRole(stage: KafkaStage, broken: string, error: Error): void {
  const { topicRules } = stage.broker;
  const change = topicRules.change.bind(topicRules);
  topicRules.change = (role: string, apply: (rules: readonly TopicRule[]) => TopicRule[]) =>
    role === broken ? Promise.reject(error) : change(role, apply);
}

test("the bound of roles is answered with POLICY_VIOLATION", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  breakRole(stage, "b", new PlatformError("conflict", "There are rules for 10000 roles already."));
  const { results } = await client.ask(createAcls, 2, { creations: ["a", "b"].map(acl) });
  assert.deepEqual(results, [
    { errorCode: ERROR_CODES.none, errorMessage: null },
    {
      errorCode: ERROR_CODES.policyViolation,
      errorMessage: "There are rules for 10000 roles already.",
    },
  ]);
});

test("a deletion that fails for one role is reported for its ACLs, and the others are deleted", async () => {
  await using stage = await KafkaStage.open();
  const client = await stage.connect();
  await client.ask(createAcls, 2, { creations: ["a", "b", "c"].map(acl) });
  breakRole(stage, "b", new PlatformError("insufficient_storage", "The disk is full."));
  const { filterResults } = await client.ask(deleteAcls, 2, { filters: [EVERYTHING] });
  assert.equal(filterResults.length, 1);
  const [{ errorCode, matchingAcls }] = filterResults as [(typeof filterResults)[number]];
  assert.equal(errorCode, ERROR_CODES.none);
  assert.deepEqual(
    matchingAcls.map((each) => [each.principal, each.errorCode !== ERROR_CODES.none]),
    [
      ["Role:a", false],
      ["Role:b", true],
      ["Role:c", false],
    ],
  );
  const { resources } = await client.ask(describeAcls, 2, EVERYTHING);
  assert.deepEqual(
    resources.flatMap(({ acls }) => acls.map(({ principal }) => principal)),
    ["Role:b"],
  );
});
