// Console sessions: logins are checked and throttled, sessions are kept in memory.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";

const SESSION_MS = 12 * 3_600_000;
const SESSIONS_MAX = 1_000;
const FAILURES_MAX = 10;
const FAILURE_WINDOW_MS = 900_000;
const THROTTLED_MAX = 10_000;
const COOKIE = "platform_vault_session";

/** A session as its holder sees it. */
export interface Session {
  user: string;
  expiresMs: number;
}

/** Console sessions. */
export class ConsoleSessions {
  readonly #clock: Clock;
  readonly #accessKey: string;
  readonly #secretDigest: Buffer;
  /** By digest of the token: memory contents do not open a session. */
  readonly #sessions = new Map<string, Session>();
  readonly #failures = new Map<string, { count: number; sinceMs: number }>();

  constructor(options: { clock: Clock; accessKey: string; secretKey: string }) {
    this.#clock = options.clock;
    this.#accessKey = options.accessKey;
    this.#secretDigest = digest(options.secretKey);
  }

  /** Checks the root key and its secret. Throws 401, or 429 after ten failures from an address within 15 minutes. */
  login(peer: string, accessKey: string, secretKey: string): { cookie: string; session: Session } {
    this.#checkThrottle(peer);
    const isSecret = timingSafeEqual(digest(secretKey), this.#secretDigest);
    if (accessKey !== this.#accessKey || !isSecret) {
      this.#noteFailure(peer);
      throw new PlatformError("unauthorized", "The key or the secret is wrong.");
    }
    this.#failures.delete(peer);
    const token = randomBytes(32).toString("base64url");
    const session = { user: accessKey, expiresMs: this.#clock.now() + SESSION_MS };
    if (this.#sessions.size >= SESSIONS_MAX) {
      this.#sessions.delete(this.#sessions.keys().next().value ?? "");
    }
    this.#sessions.set(name(token), session);
    return { cookie: formatCookie(token, SESSION_MS / 1000), session };
  }

  /** The session of a Cookie header; `undefined` if it has no valid session. */
  find(cookies: string | null): Session | undefined {
    const token = readCookie(cookies);
    const session = token === undefined ? undefined : this.#sessions.get(name(token));
    if (session === undefined || session.expiresMs <= this.#clock.now()) return undefined;
    return session;
  }

  /** Ends a session. Returns the cookie that deletes it in the browser. */
  logout(cookies: string | null): string {
    const token = readCookie(cookies);
    if (token !== undefined) this.#sessions.delete(name(token));
    return formatCookie("", 0);
  }

  #checkThrottle(peer: string): void {
    const failures = this.#failures.get(peer);
    if (failures === undefined) return;
    const leftMs = failures.sinceMs + FAILURE_WINDOW_MS - this.#clock.now();
    if (leftMs <= 0) this.#failures.delete(peer);
    else if (failures.count >= FAILURES_MAX) {
      throw new PlatformError("too_many_requests", "There were too many failed logins.", {
        headers: { "Retry-After": String(Math.ceil(leftMs / 1000)) },
      });
    }
  }

  #noteFailure(peer: string): void {
    const failures = this.#failures.get(peer) ?? { count: 0, sinceMs: this.#clock.now() };
    failures.count += 1;
    if (this.#failures.size >= THROTTLED_MAX) {
      this.#failures.delete(this.#failures.keys().next().value ?? "");
    }
    this.#failures.set(peer, failures);
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function name(token: string): string {
  return digest(token).toString("base64url");
}

function readCookie(cookies: string | null): string | undefined {
  return cookies
    ?.split(";")
    .map((part) => part.trim())
    .find((part) => part.startsWith(`${COOKIE}=`))
    ?.slice(COOKIE.length + 1);
}

function formatCookie(token: string, seconds: number): string {
  return `${COOKIE}=${token}; Path=/; HttpOnly; SameSite=Strict; Max-Age=${seconds}`;
}
