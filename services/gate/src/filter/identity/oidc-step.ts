// The step of browser sign-in: admits signed-in browsers, renews their sessions and sends others to the sign-in.
import { Known, type HeadWriter } from "@platform/http1";
import { createRetryLaterError, createUnauthorizedError } from "@platform/kernel/errors";
import { answerWith, readMethod } from "../../exchange/answers.ts";
import type { TokenClaims } from "../../exchange/caller.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import {
  type BrowserSession,
  type EndableSession,
  formatSessionCookies,
  type OidcAuth,
  SIGN_IN_PATH,
  splitCookies,
  unseal,
} from "../../shared-state/index.ts";
import { encodeValue } from "./identity.ts";
import type { StepParts } from "../step-parts.ts";

/** A session continues for this long while its identity provider does not answer. */
const OUTAGE_SECONDS = 300;
const OPENED_MAX = 1_024;
const TARGET_CHARACTERS_MAX = 2_048;

interface OpenedSession {
  session: BrowserSession;
  claims: TokenClaims;
  endable: EndableSession;
  /** Identity fields for the upstream. */
  lines: Buffer;
}

/** Admits browsers with a session of the route's identity provider. */
export class OidcStep implements Step {
  readonly #auth: OidcAuth;
  readonly #parts: StepParts;
  /** Sessions by sealed text, so that most requests decrypt nothing. */
  readonly #opened = new Map<string, OpenedSession>();

  constructor(auth: OidcAuth, parts: StepParts) {
    this.#auth = auth;
    this.#parts = parts;
  }

  run(exchange: GateExchange): boolean | Promise<boolean> {
    const { client } = this.#auth;
    const isSecure = exchange.userData.forwarding.proto === "https";
    const cookie = exchange.head.fields.get(Known.Cookie) ?? "";
    const { sealed, rest } = splitCookies(cookie, client, isSecure);
    const opened = this.#open(sealed);
    if (opened === undefined) return this.#challenge(exchange);
    exchange.userData.cookies = rest;
    const now = Date.now() / 1_000;
    const { freshUntil = Infinity } = opened.session;
    if (now < freshUntil) return this.#enter(exchange, opened);
    return this.#renew(exchange, sealed, now < freshUntil + OUTAGE_SECONDS);
  }

  onRequestHead({ userData }: GateExchange, writer: HeadWriter): void {
    if (userData.cookies !== "") writer.field("Cookie", userData.cookies);
  }

  async #renew(exchange: GateExchange, sealed: string, isNearlyFresh: boolean): Promise<boolean> {
    const { sequence } = exchange;
    const outcome = await this.#parts.control.refreshSession(this.#auth.client, sealed);
    if (exchange.sequence !== sequence || exchange.aborted) return false;
    const state = exchange.userData;
    switch (outcome.kind) {
      case "renewed": {
        const isSecure = state.forwarding.proto === "https";
        const { client } = this.#auth;
        for (const cookie of formatSessionCookies(outcome.sealed, { client, isSecure })) {
          state.responseFields.add("Set-Cookie", cookie);
        }
        const opened = this.#open(outcome.sealed);
        return opened === undefined ? this.#challenge(exchange) : this.#enter(exchange, opened);
      }
      case "ended":
        return this.#challenge(exchange);
      case "unavailable": {
        const opened = isNearlyFresh ? this.#open(sealed) : undefined;
        if (opened !== undefined) return this.#enter(exchange, opened);
        throw createRetryLaterError("unavailable", "The identity provider does not answer.", 5);
      }
      default:
        return outcome satisfies never;
    }
  }

  #enter(exchange: GateExchange, { claims, endable, lines }: OpenedSession): boolean {
    const state = exchange.userData;
    state.caller = { kind: "user", claims, session: endable };
    state.identityLines = lines;
    state.holdsOperatorToken = this.#parts.identity.current.holdsOperatorToken(
      exchange.head.fields,
    );
    return true;
  }

  /** The session of a sealed text; undefined if it is not valid, has ended or was revoked. */
  #open(sealed: string): OpenedSession | undefined {
    if (sealed === "") return undefined;
    const opened = this.#opened.get(sealed) ?? this.#unseal(sealed);
    if (opened === undefined || opened.session.endsAt <= Date.now() / 1_000) return undefined;
    const { access } = this.#parts;
    const isOver = access.isRevoked(opened.claims) || access.endedSessions.has(opened.endable);
    return isOver ? undefined : opened;
  }

  #unseal(sealed: string): OpenedSession | undefined {
    const { client } = this.#auth;
    const session = unseal(sealed, this.#parts.cookieKeys, client) as BrowserSession | undefined;
    if (session === undefined) return undefined;
    const claims = readClaims(session);
    const { id, signedInAt } = session;
    const endable = { client, id, sid: claims.sid, sub: claims.sub, signedInAt };
    const opened = { session, claims, endable, lines: this.#format(claims) };
    if (this.#opened.size >= OPENED_MAX) this.#opened.clear();
    this.#opened.set(sealed, opened);
    return opened;
  }

  #format(claims: TokenClaims): Buffer {
    let text = this.#parts.identityLines.format(claims).toString("latin1");
    for (const [name, claim] of this.#auth.claimFields) {
      const value = claims.all?.[claim];
      if (value === undefined || value === null) continue;
      const shown = typeof value === "string" ? value : JSON.stringify(value);
      text += `${name}: ${encodeValue(shown)}\r\n`;
    }
    return Buffer.from(text, "latin1");
  }

  // Only a browser that loads a page can sign in; scripts and other clients get 401.
  #challenge(exchange: GateExchange): boolean {
    const { fields } = exchange.head;
    const method = readMethod(exchange);
    const mode = fields.find("sec-fetch-mode");
    const isPage =
      (method === "GET" || method === "HEAD") &&
      (mode === undefined
        ? (fields.find("accept") ?? "").includes("text/html")
        : mode === "navigate");
    if (!isPage) {
      throw createUnauthorizedError("Sign in to use this.", 'Session realm="gateway"');
    }
    const to = readTarget(exchange);
    const query = new URLSearchParams({ client: this.#auth.client, to });
    answerWith(exchange, {
      status: 303,
      headers: [
        ["Location", `${SIGN_IN_PATH}login?${query.toString()}`],
        ["Cache-Control", "no-store"],
      ],
    });
    return false;
  }
}

function readTarget({ head }: GateExchange): string {
  const target = head.bytes.toString("latin1", head.pathStart, head.targetEnd);
  return target.length <= TARGET_CHARACTERS_MAX ? target : "/";
}

function readClaims({ claims: all, signedInAt }: BrowserSession): TokenClaims {
  const read = (name: string): Record<string, string> =>
    typeof all[name] === "string" ? { [name]: all[name] } : {};
  const { username, preferred_username: preferred, roles, scope } = all;
  const name = typeof username === "string" ? username : preferred;
  return {
    ...read("iss"),
    ...read("sub"),
    ...read("sid"),
    ...read("jti"),
    ...read("kid"),
    ...read("tenant"),
    ...(typeof name === "string" ? { username: name } : {}),
    iat: signedInAt,
    roles: Array.isArray(roles) ? roles.filter((role) => typeof role === "string") : [],
    scope: typeof scope === "string" ? scope.split(" ").filter(Boolean) : [],
    all,
  };
}
