// Failures of guests as their clients and the log see them.
import { GuestError } from "@platform/wasm/http";

/** Outcome of a request whose guest failed or was not called. */
export interface GuestFault {
  readonly code: "middleware_failed" | "overloaded" | "payload_too_large";
  readonly detail: string;
  /** For the log; the client learns nothing about the guest. */
  readonly cause: string;
  /** The guest is to blame, not the load or the client. */
  readonly isOfGuest: boolean;
}

/** The fault of a guest that failed. */
export function describeFault(error: unknown): GuestFault {
  const cause = error instanceof Error ? error.message : String(error);
  if (error instanceof GuestError && error.code === "overloaded") {
    const detail = "The middleware is overloaded; try again later.";
    return { code: "overloaded", detail, cause, isOfGuest: false };
  }
  return { code: "middleware_failed", detail: "The middleware failed.", cause, isOfGuest: true };
}

/** A guest that cannot be called. */
export function refuseCall(cause: string): GuestFault {
  const detail = "The middleware is not available.";
  return { code: "middleware_failed", detail, cause, isOfGuest: false };
}

/** More body than the route accepts. */
export function refuseBody(bytesMax: number): GuestFault {
  const detail = `The request body is larger than ${bytesMax} bytes.`;
  return { code: "payload_too_large", detail, cause: detail, isOfGuest: false };
}
