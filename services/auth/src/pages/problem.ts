// What went wrong, in the words of the user's language.
import type { PlatformError } from "@platform/kernel/errors";
import type { Messages } from "./language/en.ts";

/** A problem as a page shows it. */
export interface Problem {
  /** Of the answer. */
  status: number;
  text: string;
  /** Form field → what is wrong with it. */
  fields: Readonly<Record<string, string>>;
  retryAfter?: string;
}

/** What an error of this code means on the page that met it. */
export type Meanings = Partial<Record<PlatformError["code"], string>>;

/**
 * Puts an error into words; `meanings` are those of the page. Undefined for errors that are nobody's but ours: the
 * caller shows its error page for them.
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
    // A 401 would have to name a scheme of HTTP authentication, which pages have none of.
    return of(error.status === 401 ? 422 : error.status, meaning);
  }
  switch (error.code) {
    case "validation_failed":
      return { ...of(422, problems.invalid), fields: nameFields(error, messages) };
    case "channel_unavailable":
      return of(409, problems.noMail);
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

/** A problem with fields of a form. */
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
