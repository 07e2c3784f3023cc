// Callers of API requests, and the secret that proves that a request passed the workers' guard.
import { createHash, timingSafeEqual } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { Guard, GuardedRequest } from "@platform/kernel/http";
import { type Caller, requireScope } from "@platform/kernel/identity";
import type { ChangeRequest } from "../control/controller.ts";
import { CONTROL_CALLER_HEADER, CONTROL_SECRET_HEADER } from "../shared-state/index.ts";

/** Scope of reading, without secrets. */
export const READ_SCOPE = "gate:read";
/** Scope of everything. */
export const ADMIN_SCOPE = "gate:admin";

/** Reads the caller and the precondition of a change. */
export function readChangeRequest({ headers }: GuardedRequest): ChangeRequest {
  const caller = headers.get(CONTROL_CALLER_HEADER) ?? "unknown";
  return { caller, headers, isConfined: caller !== "operator" && caller !== "local" };
}

/** Creates a constant-time comparison with a secret. */
export function createSecretCheck(secret: string): (given: unknown) => boolean {
  const wanted = digest(secret);
  return (given) => timingSafeEqual(digest(typeof given === "string" ? given : ""), wanted);
}

/**
 * Admits only requests from the workers, which have already authorized the caller: as the operator, or as a user with the
 * scope `gate:read`, who may only read.
 */
export function createWorkerGuard(secret: string): Guard {
  const isSecret = createSecretCheck(secret);
  return ({ headers, method }) => {
    if (!isSecret(headers.get(CONTROL_SECRET_HEADER))) {
      throw new PlatformError(
        "forbidden",
        "the control plane accepts requests only from the gateway's workers",
      );
    }
    const [kind, sub = ""] = (headers.get(CONTROL_CALLER_HEADER) ?? "").split(" ");
    if (kind !== "reader") return { kind: "operator" };
    if (method !== "GET" && method !== "HEAD") {
      throw new PlatformError("forbidden", "The scope gate:admin is required.");
    }
    const claims = { sub, scope: [READ_SCOPE], roles: [], exp: Infinity, all: {} };
    return { kind: "user", claims };
  };
}

/** Throws unless the caller may read. */
export function requireRead(caller: Caller): void {
  requireScope(caller, READ_SCOPE);
}

/** True if the caller sees secrets of the configuration: readers do not. */
export function seesSecrets(caller: Caller): boolean {
  return caller.kind === "operator";
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
