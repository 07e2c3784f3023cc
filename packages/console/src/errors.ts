// Errors of the console, with the reason that the page reacts to.
import { PlatformError, type ErrorCode } from "@platform/kernel/errors";
import type { ConsoleReason } from "./contract.ts";

const TEXTS: Record<ConsoleReason, [code: ErrorCode, detail: string]> = {
  no_session: ["unauthorized", "Sign in first."],
  session_expired: ["unauthorized", "The session has ended. Sign in again."],
  recent_sign_in_required: [
    "unauthorized",
    "Sign in again: this change requires a sign-in within the last ten minutes.",
  ],
  not_signed_in_to_service: ["unauthorized", "The session has no credentials of this service."],
  service_down: ["upstream_unreachable", "The service does not answer."],
  sessions_unavailable: [
    "unavailable",
    "Sessions cannot be read now: their store does not answer. Nobody is signed out; try again in a moment.",
  ],
  foreign_origin: ["forbidden", "The request does not come from a page of the console."],
};
/** RFC 9470 section 3. */
const STEP_UP =
  'Bearer error="insufficient_user_authentication", error_description="A more recent authentication is required", max_age="600"';

/** Seconds after which a request may succeed while the store of sessions is down. */
const RETRY_S = "5";
const HEADERS: Partial<Record<ConsoleReason, { headers: Record<string, string> }>> = {
  recent_sign_in_required: { headers: { "WWW-Authenticate": STEP_UP } },
  sessions_unavailable: { headers: { "Retry-After": RETRY_S } },
};

/** Creates an error; `detail` replaces the default text. */
export function createConsoleError(
  reason: ConsoleReason,
  options: { detail?: string; cause?: unknown } = {},
): PlatformError {
  const [code, text] = TEXTS[reason];
  return new PlatformError(code, options.detail ?? text, {
    fields: { reason },
    cause: options.cause,
    ...HEADERS[reason],
  });
}
