// Explains errors in the user's language.
import type { PlatformError } from "@platform/kernel/errors";
import type { Messages } from "./language/en.ts";

/** A problem as a page shows it. */
export interface Problem {
  /** Status of the response. */
  status: number;
  text: string;
  /** Form field → its error. */
  fields: Readonly<Record<string, string>>;
  retryAfter?: string;
}

/** Explanations of error codes on a particular page. */
export type Meanings = Partial<Record<PlatformError["code"], string>>;

/**
 * Explains an error; `meanings` are those of the page. Returns `undefined` for internal errors, for which the caller
 * shows an error page.
 */
export function explainError(
  error: PlatformError,
  messages: Messages,
  meanings: Meanings = {},
): Problem | undefined {
  const { problems } = messages;
  const of = (status: number, text: string): Problem => ({ status, text, fields: {} });
  const meaning = meanings[error.code];
  const retryAfter = error.headers["Retry-After"];
  if (error.code === "too_many_requests") {
    const seconds = Number(retryAfter ?? 1);
    return { ...of(429, problems.tooMany(seconds)), retryAfter: String(seconds) };
  }
  if (meaning !== undefined) {
    // A 401 would have to name a scheme of HTTP authentication, and pages use none.
    return of(error.status === 401 ? 422 : error.status, meaning);
  }
  switch (error.code) {
    case "validation_failed":
      return { ...of(422, problems.invalid), fields: nameFields(error, messages) };
    case "channel_unavailable":
      return of(409, problems.noMail);
    case "recipient_rejected":
      return of(422, problems.rejected);
    case "conflict":
      return of(409, problems.conflict);
    case "not_found":
      return of(404, problems.gone);
    case "forbidden":
      return of(403, problems.refused);
    case "bad_request":
      return of(422, problems.invalid);
    case "overloaded":
    case "queue_full":
    case "unavailable":
      return { ...of(503, problems.unavailable), retryAfter: retryAfter ?? "5" };
    default:
      return undefined;
  }
}

/** A problem of form fields. */
export function createFieldProblem(
  fields: Readonly<Record<string, string>>,
  messages: Messages,
): Problem {
  return { status: 422, text: messages.problems.invalid, fields };
}

function nameFields(error: PlatformError, { problems }: Messages): Record<string, string> {
  const found: Record<string, string> = {};
  const { errors } = error.fields as { errors?: readonly { path: string }[] };
  for (const { path } of errors ?? []) {
    switch (path) {
      case "username":
      case "email":
      case "phone":
      case "password":
        found[path] = problems[path];
        break;
      case "new_password":
        found[path] = problems.password;
        break;
      default:
    }
  }
  return found;
}
