// Callers of API requests, and the secret that proves that a request passed the workers' guard.
import { createHash, timingSafeEqual } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { Guard, GuardedRequest } from "@platform/kernel/http";
import type { ChangeRequest } from "../control/controller.ts";
import { CONTROL_CALLER_HEADER, CONTROL_SECRET_HEADER } from "../shared-state/index.ts";

/** Reads the caller and the precondition of a change. */
export function readChangeRequest({ headers }: GuardedRequest): ChangeRequest {
  return { caller: headers.get(CONTROL_CALLER_HEADER) ?? "unknown", headers };
}

/** Creates a constant-time comparison with a secret. */
export function createSecretCheck(secret: string): (given: unknown) => boolean {
  const wanted = digest(secret);
  return (given) => timingSafeEqual(digest(typeof given === "string" ? given : ""), wanted);
}

/** Admits only requests from the workers, which have already authorized the caller. */
export function createWorkerGuard(secret: string): Guard {
  const isSecret = createSecretCheck(secret);
  return ({ headers }) => {
    if (!isSecret(headers.get(CONTROL_SECRET_HEADER))) {
      throw new PlatformError(
        "forbidden",
        "the control plane accepts requests only from the gateway's workers",
      );
    }
    return { kind: "operator" };
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
