// Requests to the broker, with the token of the user.
import type { Problem } from "./errors.ts";

/** The broker's problem document: a proxy's page of HTML is none. */
export async function readProblem(response: Response): Promise<Problem | undefined> {
  if (!/json/.test(response.headers.get("content-type") ?? "")) return undefined;
  try {
    const { code, detail, title, index } = (await response.json()) as Record<string, unknown>;
    if (typeof code !== "string") return undefined;
    return {
      code,
      detail: typeof detail === "string" ? detail : typeof title === "string" ? title : code,
      status: response.status,
      ...(typeof index === "number" && Number.isSafeInteger(index) ? { index } : {}),
    };
  } catch {
    return undefined;
  }
}

/** Reads Retry-After in ms; the form with a date is not read, because clocks differ. */
export function readRetryAfter(response: Response): number {
  const text = response.headers.get("retry-after") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1_000 : 0;
}

/** A token for a request, and whether it may be used. */
export type Credential =
  | { kind: "ready"; token: string | undefined }
  /** The token is the one that was refused, of somebody else, or could not be had. */
  | { kind: "unusable" };

/** Options of `Connection`. */
export interface ConnectionOptions {
  url: string;
  /** Called for each request; without it the browser's cookies are sent. */
  token?: (() => string | undefined | Promise<string | undefined>) | undefined;
  /** Tenant that an administrator acts for. */
  tenant?: string | undefined;
}

/** Sends requests. One token at a time is remembered as refused. */
export class Connection {
  readonly #options: ConnectionOptions;
  readonly #base: string;
  #refused: string | undefined;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    // Resolved against the page, so that "/messaging" works behind a gateway.
    this.#base = new URL(options.url, globalThis.location?.href).href.replace(/\/+$/, "");
  }

  /** The broker's address without a slash at the end. */
  get base(): string {
    return this.#base;
  }

  async credential(): Promise<Credential> {
    const { token } = this.#options;
    if (token === undefined) return { kind: "ready", token: undefined };
    try {
      const text = await token();
      if (text === undefined || text === "" || text === this.#refused) return { kind: "unusable" };
      return { kind: "ready", token: text };
    } catch {
      return { kind: "unusable" };
    }
  }

  /** Remembers that the broker answered 401 to this token. */
  refuse(token: string | undefined): void {
    this.#refused = token;
  }

  /** Address of a path, with the tenant. */
  address(path: string, query: Record<string, string | undefined> = {}): URL {
    const url = new URL(`${this.#base}${path}`);
    const all = { ...query, tenant: this.#options.tenant };
    for (const [name, value] of Object.entries(all)) {
      if (value !== undefined) url.searchParams.set(name, value);
    }
    return url;
  }

  fetch(url: URL, token: string | undefined, init: RequestInit): Promise<Response> {
    const headers = new Headers(init.headers);
    if (token !== undefined) headers.set("authorization", `Bearer ${token}`);
    return fetch(url, {
      ...init,
      headers,
      cache: "no-store",
      credentials: token === undefined ? "include" : "same-origin",
    });
  }
}

/** The claim `sub` of a JSON Web Token (RFC 7519 section 4.1.2), not verified; undefined for other tokens. */
export function readSubject(token: string | undefined): string | undefined {
  const claims = token?.split(".")[1];
  if (claims === undefined) return undefined;
  try {
    const text = atob(claims.replaceAll("-", "+").replaceAll("_", "/"));
    const { sub } = JSON.parse(text) as { sub?: unknown };
    return typeof sub === "string" ? sub : undefined;
  } catch {
    return undefined;
  }
}
