// What a request to the API says about who sent it, and the proof that it came through the gateway's guard.
import { createHash, timingSafeEqual } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { Guard, GuardedRequest } from "@platform/kernel/http";
import type { ChangeRequest } from "../control/controller.ts";
import { CONTROL_CALLER_HEADER, CONTROL_SECRET_HEADER } from "../shared-state/index.ts";

/** The caller and the condition of a change. */
export function readChangeRequest({ headers }: GuardedRequest): ChangeRequest {
  return { caller: headers.get(CONTROL_CALLER_HEADER) ?? "unknown", headers };
}

/** A check of a secret that takes the same time whatever is wrong with the text. */
export function createSecretCheck(secret: string): (given: unknown) => boolean {
  const wanted = digest(secret);
  return (given) => timingSafeEqual(digest(typeof given === "string" ? given : ""), wanted);
}

/** Lets requests of the gateway's own workers in, which have looked at the caller already. */
export function createWorkerGuard(secret: string): Guard {
  const isSecret = createSecretCheck(secret);
  return ({ headers }) => {
    if (!isSecret(headers.get(CONTROL_SECRET_HEADER))) {
      throw new PlatformError("forbidden", "the control plane answers the gateway's workers only");
    }
    return { kind: "operator" };
  };
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
