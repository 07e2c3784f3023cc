// What a request to the API says about who sent it, and the proof that it came through the gateway's guard.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Context } from "hono";
import type { ChangeRequest } from "../control/controller.ts";
import { CONTROL_CALLER_HEADER } from "../snapshot/index.ts";

/** The caller and the condition of a change. */
export function readChangeRequest(context: Context): ChangeRequest {
  return {
    caller: context.req.header(CONTROL_CALLER_HEADER) ?? "unknown",
    ifMatch: context.req.header("if-match"),
  };
}

/** A check of a secret that takes the same time whatever is wrong with the text. */
export function createSecretCheck(secret: string): (given: string | null | undefined) => boolean {
  const wanted = createHash("sha256").update(secret).digest();
  return (given) => {
    const offered = createHash("sha256")
      .update(given ?? "")
      .digest();
    return timingSafeEqual(offered, wanted) && given !== null && given !== undefined;
  };
}
