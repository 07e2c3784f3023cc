// Credentials that may be replaced by `credentials rotate`.
import { suggestName } from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";
import type { CredentialStore } from "../credentials/credential-store.ts";
import { CREDENTIALS, type CredentialEntry } from "./credential-table.ts";

/** Longest time for which a former value is accepted: 30 days. */
export const OVERLAP_S_MAX = 30 * 86_400;

/** The entry of a credential. Throws 404 for an unknown name, and 409 for one that is replaced in another way. */
export function findRotatable(name: string): CredentialEntry {
  const entry = CREDENTIALS.find((one) => one.name === name);
  if (entry === undefined) {
    const names = CREDENTIALS.map((one) => one.name);
    throw new PlatformError(
      "not_found",
      `There is no credential ${JSON.stringify(name)}${suggestName(name, names)}.`,
    );
  }
  if (entry.otherwise !== undefined) {
    throw new PlatformError("conflict", `${name} is not rotated: ${entry.otherwise}.`);
  }
  return entry;
}

/**
 * Throws unless a credential can be replaced now: 404 for an unknown name, 409 for one that is replaced in another way, is a
 * variable of the environment, has no value yet, or has a former value that is still accepted, which an overlap of 0 ends.
 */
export function requireRotatable(
  store: Pick<CredentialStore, "find" | "isFixed" | "list">,
  name: string,
  overlapMs: number,
): void {
  findRotatable(name);
  if (store.isFixed(name)) {
    throw new PlatformError(
      "conflict",
      `${name} is a variable of the platform's environment: change it there, and restart the platform.`,
    );
  }
  if (store.find(name) === undefined) {
    throw new PlatformError("conflict", `${name} has no value yet: the next start creates it.`);
  }
  const former = store.list().find((one) => one.name === name)?.formerEndsAtMs;
  if (former === undefined || overlapMs === 0) return;
  throw new PlatformError(
    "conflict",
    `A former value of ${name} is accepted until ${new Date(former).toISOString()}: wait, or end it with an overlap of 0.`,
  );
}
