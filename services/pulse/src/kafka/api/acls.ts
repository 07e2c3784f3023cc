// DescribeAcls, CreateAcls, DeleteAcls: the topic rules of roles, for operators.
import { PlatformError } from "@platform/kernel/errors";
import {
  isOfAll,
  isSelected,
  listGrants,
  PATTERN_TYPES,
  readRights,
  readTarget,
  withAll,
  withoutGrants,
  withRights,
  type AclBinding,
  type AclFilter,
  type Grant,
} from "../acl-bindings.ts";
import { FINE, toAnswer, type Answer } from "../answer.ts";
import type { KafkaBroker } from "../broker.ts";
import { ERROR_CODES } from "../protocol/error-codes.ts";
import { createAcls, deleteAcls, describeAcls } from "../protocol/messages/index.ts";
import type { Read } from "../protocol/schema.ts";
import { requireRight } from "../server/access.ts";
import { route, type Route } from "../server/route.ts";

const REFUSED: Answer = {
  errorCode: ERROR_CODES.clusterAuthorizationFailed,
  errorMessage: "Only operators may read and change topic rules.",
};

/** Creates the routes of ACLs. */
export function createAclRoutes({ topicRules }: KafkaBroker): Route[] {
  const listAll = (): Grant[] => topicRules.list().flatMap(listGrants);

  const createOf = async (all: readonly AclBinding[], acl: AclBinding): Promise<Answer> => {
    const target = readTarget(acl);
    if ("reason" in target) return refuse(target.reason);
    const { role, topics } = target;
    if (isOfAll(acl))
      return apply(() => topicRules.change(role, (rules) => withAll(rules, topics)));
    // Operations of the same topics are read together: some of them are one right.
    const together = all.filter((other) => isSameTarget(acl, other) && !isOfAll(other));
    const rights = readRights(new Set(together.map(({ operation }) => operation)));
    if ("reason" in rights) return refuse(rights.reason);
    if (rights.length === 0) {
      const known = topicRules.find(role)?.rules.some((rule) => rule.topics === topics);
      return known === true
        ? FINE
        : refuse("DESCRIBE is implied by each right, and is none itself");
    }
    return apply(() => topicRules.change(role, (rules) => withRights(rules, topics, rights)));
  };

  const deleteOf = async (filter: AclFilter) => {
    const problem = checkFilter(filter);
    if (problem !== undefined) return { ...problem, matchingAcls: [] };
    const chosen: Grant[] = [];
    for (const grant of listAll()) {
      const selected = grant.acls.filter((acl) => isSelected(filter, acl));
      if (selected.length === 0) continue;
      if (selected.length < grant.acls.length) {
        const reason = "CREATE, DELETE, ALTER and ALTER_CONFIGS are one right: delete all four";
        return { ...refuse(reason), matchingAcls: [] };
      }
      chosen.push(grant);
    }
    // A role that fails does not keep the others: each ACL has the outcome of its role.
    const matchingAcls: (Answer & AclBinding)[] = [];
    for (const [role, own] of Map.groupBy(chosen, (grant) => grant.role)) {
      const outcome = await apply(() =>
        topicRules.change(role, (rules) => withoutGrants(rules, own)),
      );
      for (const { acls } of own) matchingAcls.push(...acls.map((acl) => ({ ...outcome, ...acl })));
    }
    return { ...FINE, matchingAcls };
  };

  return [
    route(
      describeAcls,
      requireRight("operator", refuseAll, (filter) => {
        const problem = checkFilter(filter);
        if (problem !== undefined) return { throttleTimeMs: 0, ...problem, resources: [] };
        const acls = listAll()
          .flatMap((grant) => grant.acls)
          .filter((acl) => isSelected(filter, acl));
        const byResource = Map.groupBy(
          acls,
          ({ resourceName, patternType }) => `${patternType} ${resourceName}`,
        );
        const resources = byResource.values().map((own) => {
          const { resourceType, resourceName, patternType } = own[0]!;
          return { resourceType, resourceName, patternType, acls: own };
        });
        return { throttleTimeMs: 0, ...FINE, resources: [...resources] };
      }),
    ),

    route(
      createAcls,
      requireRight("operator", refuseCreation, async ({ creations }) => {
        const results: Answer[] = [];
        for (const acl of creations) results.push(await createOf(creations, acl));
        return { throttleTimeMs: 0, results };
      }),
    ),

    route(
      deleteAcls,
      requireRight("operator", refuseDeletion, async ({ filters }) => {
        const filterResults = [];
        for (const filter of filters) filterResults.push(await deleteOf(filter));
        return { throttleTimeMs: 0, filterResults };
      }),
    ),
  ];
}

// As over HTTP: rules are for the roles of all tenants.
function refuseAll() {
  return { throttleTimeMs: 0, ...REFUSED, resources: [] };
}

function refuseCreation({ creations }: Read<typeof createAcls.request>) {
  return { throttleTimeMs: 0, results: creations.map(() => REFUSED) };
}

function refuseDeletion({ filters }: Read<typeof deleteAcls.request>) {
  const filterResults = filters.map(() => ({ ...REFUSED, matchingAcls: [] }));
  return { throttleTimeMs: 0, filterResults };
}

/** Kafka refuses filters with unknown values. */
function checkFilter(filter: AclFilter): Answer | undefined {
  const { resourceType, patternType, operation, permissionType } = filter;
  const isKnown =
    resourceType > 0 && operation > 0 && permissionType > 0 && patternType >= PATTERN_TYPES.any;
  return isKnown ? undefined : refuse("the filter has an unknown value");
}

function isSameTarget(one: AclBinding, other: AclBinding): boolean {
  return (
    one.resourceType === other.resourceType &&
    one.resourceName === other.resourceName &&
    one.patternType === other.patternType &&
    one.principal === other.principal &&
    one.host === other.host &&
    one.permissionType === other.permissionType
  );
}

async function apply(change: () => Promise<void>): Promise<Answer> {
  try {
    await change();
    return FINE;
  } catch (error) {
    // The conflict of rules is a bound; that of the catalogue is a topic that exists.
    if (error instanceof PlatformError && error.code === "conflict") {
      return { errorCode: ERROR_CODES.policyViolation, errorMessage: error.detail };
    }
    return toAnswer(error);
  }
}

function refuse(reason: string): Answer {
  return { errorCode: ERROR_CODES.invalidRequest, errorMessage: `${reason}.` };
}
