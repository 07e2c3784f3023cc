// Checks of submitted account data that API and pages share.
import type { PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import { isDeceptive } from "../user/deceptive-name.ts";
import type { PasswordPolicy } from "./password-policy.ts";

/** Creates the 400 error for an invalid member of the JSON body. */
export function createInputError(path: string, message: string): PlatformError {
  return createValidationError([{ in: "body", path, message }]);
}

/** Throws 400 for deceptive display names. */
export function requireHonestName(name: string): void {
  if (isDeceptive(name)) throw createInputError("name", "contains deceptive characters");
}

/**
 * Throws 400 for the JSON member at `path` if the policy rejects the password; `names` are the user's names and address,
 * which it must not equal or resemble.
 */
export function requireGoodPassword(
  policy: PasswordPolicy,
  password: string,
  names: readonly (string | undefined)[],
  path: string,
): void {
  const problem = policy.findProblem(password, names);
  if (problem !== undefined) throw createInputError(path, problem);
}
