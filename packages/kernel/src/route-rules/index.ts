// Fields of the gateway's routes that projects may set as well: the gateway and `platform check` validate them alike.
export { type BoundFields, boundFields } from "./bounds.ts";
export { type CacheFields, cacheFields, checkCacheFields } from "./cache.ts";
export { corsSchema } from "./cors.ts";
export { type GuardFields, guardFields } from "./guards.ts";
export {
  checkLimitFields,
  type LimitFields,
  limitFields,
  NETWORKS_MAX,
  RATE_MAX,
} from "./limits.ts";
export {
  type PolicyPlace,
  type PolicyRule,
  policyReloadSchema,
  readPolicy,
  readPolicyText,
} from "./policy.ts";
export { retrySchema, statuses } from "./retry.ts";
export {
  ACCESS_FIELDS,
  checkRules,
  restrictsAccess,
  type GatewayRules,
  RULE_FIELDS,
  type RulesProblem,
} from "./rules.ts";
export {
  BYTES_MAX,
  DAY_MS,
  dropUnset,
  fieldName,
  normalizePrefix,
  text,
  unset,
  unsetOr,
  wholeNumber,
  yesNo,
} from "./value.ts";
