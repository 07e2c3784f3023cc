// Follows the token of a connection's client, which may change when the client authenticates again.
import type { RevocableToken } from "@platform/kernel/identity";
import type { Authentication } from "./session.ts";

/** Calls `end` when the token is revoked; the returned function cancels this. */
export type FollowToken = (token: RevocableToken, end: () => void) => () => void;

/** The followed token of one connection. */
export class TokenWatch {
  readonly #follow: FollowToken;
  readonly #end: () => void;
  #token: RevocableToken | undefined;
  #forget: () => void = () => undefined;

  /** `end` is called when the current token is revoked. */
  constructor(follow: FollowToken, end: () => void) {
    this.#follow = follow;
    this.#end = end;
  }

  /** Follows the token of the authenticated client instead of the previous one. */
  update(authentication: Authentication): void {
    const token = authentication.state === "done" ? authentication.principal.token : undefined;
    if (token === this.#token) return;
    this.stop();
    this.#token = token;
    if (token !== undefined) this.#forget = this.#follow(token, this.#end);
  }

  stop(): void {
    this.#forget();
    this.#forget = () => undefined;
    this.#token = undefined;
  }
}
