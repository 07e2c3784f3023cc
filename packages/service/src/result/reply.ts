// Answers with a status, fields and cookies.
import { formatCookie, type CookieOptions } from "../request/cookies.ts";

/** Options of {@link reply}. */
export interface ReplyOptions {
  /** 200 to 599; default 200, or 204 without a body. */
  status?: number;
  /** Fields by name; arrays are several lines. The length and the connection are set by the server. */
  headers?: Readonly<Record<string, string | readonly string[]>>;
  /** Cookies by name: a value, or a value with attributes; `null` deletes the cookie. */
  cookies?: Readonly<Record<string, string | null | (CookieOptions & { value: string })>>;
}

/** An answer that `reply` created. */
export class Reply {
  readonly body: unknown;
  readonly status: number | undefined;
  readonly headers: readonly (readonly [name: string, value: string])[];

  constructor(body: unknown, { status, headers = {}, cookies = {} }: ReplyOptions) {
    if (status !== undefined && (!Number.isInteger(status) || status < 200 || status > 599)) {
      throw new RangeError(`reply: the status must be from 200 to 599, not ${status}`);
    }
    this.body = body;
    this.status = status;
    const lines = Object.entries(headers).flatMap(([name, value]) =>
      (typeof value === "string" ? [value] : value).map((one) => [name, one] as const),
    );
    this.headers = [...lines, ...Object.entries(cookies).map(formatEntry)];
  }
}

/**
 * Answers with a status, fields or cookies.
 *
 * ```ts
 * return reply(note, { status: 201, headers: { Location: `/notes/${note.id}` } });
 * return reply(undefined, { cookies: { session: { value: token, maxAge: 3600 } } });
 * ```
 */
export function reply(body?: unknown, options: ReplyOptions = {}): Reply {
  return new Reply(body, options);
}

/** Redirects to a URL or path. The default 303 makes the browser use GET. */
export function redirect(location: string | URL, status: 301 | 302 | 303 | 307 | 308 = 303): Reply {
  // Existing escapes stay.
  const encoded = String(location).replaceAll(/[^\x21-\x7e]+/g, encodeURIComponent);
  return new Reply(undefined, { status, headers: { Location: encoded } });
}

function formatEntry([name, cookie]: [
  string,
  string | null | (CookieOptions & { value: string }),
]): readonly [string, string] {
  if (cookie === null) return ["Set-Cookie", formatCookie(name, "", { maxAge: 0 })];
  if (typeof cookie === "string") return ["Set-Cookie", formatCookie(name, cookie)];
  return ["Set-Cookie", formatCookie(name, cookie.value, cookie)];
}
