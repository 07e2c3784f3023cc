// Rules of federation inside the writer.
import { isOwnBucket } from "../model/bucket.ts";
import type { FederationRule } from "../model/federation.ts";
import { StoreError } from "../model/store-error.ts";
import type { WriterContext } from "./writer-context.ts";

/** Adds a rule. Throws OperationAborted if a bucket here, or another rule, has such a name. */
export interface AddFederationOperation {
  type: "addFederation";
  rule: FederationRule;
}

/** Removes a rule; one that does not exist counts as removed. */
export interface RemoveFederationOperation {
  type: "removeFederation";
  id: string;
}

const RULES_MAX = 100;
/** Begins the names of the facts that are rules. */
const FEDERATION_FACT = "federation ";

/** Applies the addition of a rule. */
export function applyAddFederation(context: WriterContext, { rule }: AddFederationOperation): null {
  const { prefix } = rule;
  const rules = listFederation(context);
  if (rules.length >= RULES_MAX)
    throw new StoreError("InvalidRequest", `There can be ${RULES_MAX} rules of federation.`);
  if (rules.some((other) => other.prefix === prefix))
    throw new StoreError("OperationAborted", `A rule has the prefix ${prefix} already.`);
  const taken = [...context.buckets.keys()].find((name) => name.startsWith(prefix));
  if (taken !== undefined)
    throw new StoreError("OperationAborted", `The bucket ${taken} is here, and has such a name.`);
  context
    .sql("insert into facts values (?, ?)")
    .run(`${FEDERATION_FACT}${rule.id}`, JSON.stringify(rule));
  return null;
}

/** Applies the removal of a rule. */
export function applyRemoveFederation(
  context: WriterContext,
  { id }: RemoveFederationOperation,
): null {
  context.sql("delete from facts where name = ?").run(`${FEDERATION_FACT}${id}`);
  return null;
}

/** All rules, in the order of their ids. */
export function listFederation(context: Pick<WriterContext, "sql">): FederationRule[] {
  return context
    .sql("select value from facts where name >= ? and name < ?")
    .all(FEDERATION_FACT, "federation!")
    .map((row) => JSON.parse(String(row["value"])) as FederationRule);
}

/** Throws BucketAlreadyExists for the name of a new bucket that a rule has; buckets of the store itself have no such names. */
export function requireNotFederated(context: WriterContext, name: string): void {
  if (isOwnBucket(name)) return;
  const rule = listFederation(context).find(({ prefix }) => name.startsWith(prefix));
  if (rule === undefined) return;
  throw new StoreError(
    "BucketAlreadyExists",
    `Buckets that begin with ${rule.prefix} are in the remote ${rule.remote}.`,
    { bucket: name },
  );
}
