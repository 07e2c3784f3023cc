// Checks of submitted account data that API and pages share.
import type { Fault, PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import { isDeceptive } from "../user/deceptive-name.ts";
import type { PasswordPolicy } from "./password-policy.ts";

/** Of a text that is no email address. */
export const EMAIL_FAULT: Fault = { code: "wrong_format", params: { format: "email" } };

/** Creates the 400 error for an invalid member of the JSON body. */
export function createInputError(path: string, message: string, fault: Fault): PlatformError {
  return createValidationError([{ in: "body", path, message, ...fault }]);
}

/** Throws 400 for deceptive display names. */
export function requireHonestName(name: string): void {
  if (isDeceptive(name)) {
    throw createInputError("name", "contains deceptive characters", { code: "deceptive_name" });
  }
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
  if (problem === undefined) return;
  const { message, ...fault } = problem;
  throw createInputError(path, message, fault);
}
