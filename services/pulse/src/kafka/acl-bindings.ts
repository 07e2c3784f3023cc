// Kafka's ACLs as topic rules of roles, and back.
import { ROLE_FORM, type RoleRules, type TopicRule } from "../access/topic-rules.ts";
import { fromKafkaName, toKafkaName } from "../topic/name.ts";
import { compilePattern, isPattern } from "../topic/pattern.ts";
import { RIGHTS, type Right } from "../topic/rights.ts";

/*
 *     ACL                                             topic rule
 *     principal Role:editor                           of the role editor
 *     topic, literal, notes.a                         notes.a
 *     topic, literal, *                               #
 *     topic, prefixed, notes.                         notes.*.#, which are the names with this prefix
 *     topic, literal, another pattern of the broker   the pattern; + is its wildcard * on its own
 *     WRITE                                           publish
 *     READ                                            subscribe
 *     CREATE, DELETE, ALTER and ALTER_CONFIGS         manage; only together
 *     ALL                                             publish, subscribe and manage, in one rule
 *     DESCRIBE, DESCRIBE_CONFIGS                      implied by each right
 *
 * Rules only allow, from every host, and only topics: DENY, hosts, and ACLs of other resources cannot be stored. Nor can
 * prefixes that end within a level, because patterns consist of whole levels.
 *
 * As in Kafka, ALL is an ACL of its own: it is not the sum of the others, and a filter with WRITE does not select it. Rights
 * that were created one by one are therefore never joined to a rule with all of them.
 */

/** The kinds of resources of the protocol (`org.apache.kafka.common.resource.ResourceType`). */
const RESOURCE_TYPES = { any: 1, topic: 2 } as const;
/** `PatternType`. */
export const PATTERN_TYPES = { any: 1, match: 2, literal: 3, prefixed: 4 } as const;
/** `AclPermissionType`. */
const PERMISSION_TYPES = { any: 1, deny: 2, allow: 3 } as const;
/** `AclOperation`. */
const OPERATIONS = {
  any: 1,
  all: 2,
  read: 3,
  write: 4,
  create: 5,
  delete: 6,
  alter: 7,
  describe: 8,
  describeConfigs: 10,
  alterConfigs: 11,
} as const;

const PRINCIPAL_PREFIX = "Role:";
const EVERY_HOST = "*";
const ALL_TOPICS = "#";
const PREFIXED_END = ".*.#";
const IMPLIED: readonly number[] = [OPERATIONS.describe, OPERATIONS.describeConfigs];

const OPERATIONS_OF: Readonly<Record<Right, readonly number[]>> = {
  publish: [OPERATIONS.write],
  subscribe: [OPERATIONS.read],
  manage: [OPERATIONS.create, OPERATIONS.delete, OPERATIONS.alter, OPERATIONS.alterConfigs],
};

/** An ACL of the protocol. */
export interface AclBinding {
  resourceType: number;
  resourceName: string;
  patternType: number;
  principal: string;
  host: string;
  operation: number;
  permissionType: number;
}

/** A filter for ACLs; null matches all. */
export type AclFilter = Omit<AclBinding, "resourceName" | "principal" | "host"> & {
  resourceName: string | null;
  principal: string | null;
  host: string | null;
};

/** The role and topics of an ACL. */
export interface AclTarget {
  role: string;
  topics: string;
}

/** The role and topics of an ACL, or the reason why there can be no such rule. */
export function readTarget(acl: AclBinding): AclTarget | { reason: string } {
  if (acl.permissionType !== PERMISSION_TYPES.allow) return { reason: "rules only allow" };
  if (acl.host !== EVERY_HOST) return { reason: "rules do not depend on the host: use *" };
  if (acl.resourceType !== RESOURCE_TYPES.topic) return { reason: "only topics have rules" };
  const role = acl.principal.startsWith(PRINCIPAL_PREFIX)
    ? acl.principal.slice(PRINCIPAL_PREFIX.length)
    : "";
  if (!ROLE_FORM.test(role))
    return { reason: "the principal must be Role: and the name of a role" };
  const topics = readTopics(acl);
  if (topics === undefined) {
    return { reason: "the pattern must be a topic, *, or a prefix that ends with a dot" };
  }
  try {
    compilePattern(topics);
  } catch (error) {
    return { reason: (error as Error).message };
  }
  return { role, topics };
}

/** True for the ACL of the operation ALL. */
export function isOfAll({ operation }: Pick<AclBinding, "operation">): boolean {
  return operation === OPERATIONS.all;
}

/** The rights that operations other than ALL together stand for, or the reason why they stand for none. */
export function readRights(operations: ReadonlySet<number>): Right[] | { reason: string } {
  const rights = RIGHTS.filter((right) =>
    OPERATIONS_OF[right].every((operation) => operations.has(operation)),
  );
  const covered = new Set([...IMPLIED, ...rights.flatMap((right) => OPERATIONS_OF[right])]);
  if (operations.difference(covered).size === 0) return rights;
  return { reason: "CREATE, DELETE, ALTER and ALTER_CONFIGS are one right: request all four" };
}

/** Rights of a rule that are granted and withdrawn together, with their ACLs. */
export interface Grant {
  role: string;
  topics: string;
  rights: readonly Right[];
  acls: AclBinding[];
}

/** The grants of a role: one for each rule with all rights, else one for each right. */
export function listGrants({ role, rules }: RoleRules): Grant[] {
  return rules.flatMap(({ topics, allow }) => {
    const toAcls = (operations: readonly number[]): AclBinding[] =>
      operations.map((operation) => toBinding(role, topics, operation));
    if (isFull(allow)) return [{ role, topics, rights: RIGHTS, acls: toAcls([OPERATIONS.all]) }];
    return allow.map((right) => ({
      role,
      topics,
      rights: [right],
      acls: toAcls(OPERATIONS_OF[right]),
    }));
  });
}

/** Rules without some grants. */
export function withoutGrants(rules: readonly TopicRule[], grants: readonly Grant[]): TopicRule[] {
  return rules.flatMap((rule) => {
    const dropped = grants
      .filter(
        ({ topics, rights }) => topics === rule.topics && isFull(rights) === isFull(rule.allow),
      )
      .flatMap(({ rights }) => rights);
    const allow = rule.allow.filter((right) => !dropped.includes(right));
    return allow.length === 0 ? [] : [{ ...rule, allow }];
  });
}

/** True if a filter selects an ACL (`AclBindingFilter.matches`). */
export function isSelected(filter: AclFilter, acl: AclBinding): boolean {
  const { resourceType, operation, permissionType, principal, host } = filter;
  if (resourceType !== RESOURCE_TYPES.any && resourceType !== acl.resourceType) return false;
  if (permissionType !== PERMISSION_TYPES.any && permissionType !== acl.permissionType)
    return false;
  if (principal !== null && principal !== acl.principal) return false;
  if (host !== null && host !== acl.host) return false;
  const isOfOperation = operation === OPERATIONS.any || operation === acl.operation;
  return isOfOperation && isResourceSelected(filter, acl);
}

/** Rules with all rights for a name or pattern, in a rule of their own. */
export function withAll(rules: readonly TopicRule[], topics: string): TopicRule[] {
  const isKnown = rules.some((rule) => rule.topics === topics && isFull(rule.allow));
  return isKnown ? [...rules] : [...rules, { topics, allow: [...RIGHTS] }];
}

/** Rules with more rights for a name or pattern. */
export function withRights(
  rules: readonly TopicRule[],
  topics: string,
  rights: readonly Right[],
): TopicRule[] {
  const own = rules.filter((rule) => rule.topics === topics && !isFull(rule.allow));
  const missing = rights.filter((right) => !own.some(({ allow }) => allow.includes(right)));
  if (missing.length === 0) return [...rules];
  const known = own.find(({ allow }) => allow.length + missing.length < RIGHTS.length);
  if (known === undefined) return [...rules, ...splitFull(topics, missing)];
  const allow = RIGHTS.filter((right) => known.allow.includes(right) || missing.includes(right));
  return rules.map((rule) => (rule === known ? { topics, allow } : rule));
}

/** A rule with these rights, or two if they are all. */
function splitFull(topics: string, rights: readonly Right[]): TopicRule[] {
  if (!isFull(rights)) return [{ topics, allow: [...rights] }];
  const [first, ...others] = rights;
  return [
    { topics, allow: [first!] },
    { topics, allow: others },
  ];
}

function isFull(rights: readonly Right[]): boolean {
  return RIGHTS.every((right) => rights.includes(right));
}

function toBinding(role: string, topics: string, operation: number): AclBinding {
  return {
    resourceType: RESOURCE_TYPES.topic,
    ...toResource(topics),
    principal: `${PRINCIPAL_PREFIX}${role}`,
    host: EVERY_HOST,
    operation,
    permissionType: PERMISSION_TYPES.allow,
  };
}

function isResourceSelected(filter: AclFilter, acl: AclBinding): boolean {
  const { patternType, resourceName } = filter;
  const isExact = resourceName === null || resourceName === acl.resourceName;
  if (patternType === PATTERN_TYPES.any) return isExact;
  if (patternType !== PATTERN_TYPES.match) return isExact && patternType === acl.patternType;
  if (resourceName === null || isExact) return true;
  const topics = readTopics(acl);
  return topics !== undefined && compilePattern(topics)(fromKafkaName(resourceName));
}

function readTopics({ patternType, resourceName }: AclBinding): string | undefined {
  if (patternType === PATTERN_TYPES.prefixed) {
    if (!resourceName.endsWith(".") || isPattern(resourceName)) return undefined;
    return `${fromKafkaName(resourceName.slice(0, -1))}${PREFIXED_END}`;
  }
  if (patternType !== PATTERN_TYPES.literal || resourceName === "") return undefined;
  if (resourceName === "*") return ALL_TOPICS;
  if (resourceName === "+") return "*";
  return isPattern(resourceName) ? resourceName : fromKafkaName(resourceName);
}

function toResource(topics: string): { resourceName: string; patternType: number } {
  const { literal, prefixed } = PATTERN_TYPES;
  if (topics === ALL_TOPICS) return { resourceName: "*", patternType: literal };
  if (topics === "*") return { resourceName: "+", patternType: literal };
  const prefix = topics.slice(0, -PREFIXED_END.length);
  if (topics.endsWith(PREFIXED_END) && prefix !== "" && !isPattern(prefix)) {
    return { resourceName: `${toKafkaName(prefix)}.`, patternType: prefixed };
  }
  return { resourceName: isPattern(topics) ? topics : toKafkaName(topics), patternType: literal };
}
