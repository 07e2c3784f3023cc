// Errors of an ACME directory.

/** A refused request, an order that failed, or an answer that cannot be used. */
export class AcmeError extends Error {
  /** Type of the problem without its prefix, such as `rateLimited`; "" if the answer is no problem document. */
  readonly type: string;
  /** Time to wait that the directory asks for. */
  readonly retryAfterMs: number | undefined;

  constructor(type: string, message: string, retryAfterMs?: number, cause?: unknown) {
    super(message, { cause });
    this.name = "AcmeError";
    this.type = type;
    this.retryAfterMs = retryAfterMs;
  }
}

/** Reads Retry-After, seconds or a date (RFC 9110, section 10.2.3); undefined if it is missing or invalid. */
export function readRetryAfter(headers: Headers, nowMs: number): number | undefined {
  const text = headers.get("retry-after");
  if (text === null) return undefined;
  if (/^\d{1,9}$/.test(text)) return Number(text) * 1_000;
  const at = Date.parse(text);
  return Number.isNaN(at) ? undefined : Math.max(0, at - nowMs);
}
