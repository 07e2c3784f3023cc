// Pending sign-ins: those that wait for a second factor, and their tokens.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { FactorItem, Factors } from "../factor/factors.ts";
import type { Passkeys } from "../factor/passkeys.ts";
import type { OneTimeToken, OneTimeTokens } from "../guard/one-time-tokens.ts";
import type { SessionInfo } from "../session/session.ts";
import type { Account } from "../user/account.ts";
import type { Users } from "../user/users.ts";

const TOKEN_MS = 300_000;
const ATTEMPTS_MAX = 5;

/** The purpose of a sign-in. */
export interface SignInPurpose {
  /** Space-separated scopes of the tokens; all that the roles permit if `undefined`. */
  scope?: string | undefined;
  /** The OAuth client that requests the sign-in; policies may be bound to it. */
  clientId?: string | undefined;
  /** False for a session without tokens of the built-in client. Default true. */
  mint?: boolean;
}

/** The second factors that a sign-in can continue with. */
export interface FactorChallenge {
  mfa_token: string;
  factors: { id: string; type: string; name: string; sent_to?: string }[];
  /** A policy requires a factor that the user does not have yet: it is set up with this token. */
  enrolment_required?: true;
}

/** The reason for a pending sign-in: a second factor, its enrolment, or a step-up of a session. */
export type PendingKind = "login" | "enrol" | "step-up";

/** A sign-in that waits for its second factor. */
export interface PendingSignIn {
  kind: PendingKind;
  account: Account;
  factors: readonly FactorItem[];
}

/** A pending sign-in of which an attempt was used. */
export interface ContinuedSignIn {
  kind: PendingKind;
  account: Account;
  purpose: SignInPurpose;
  /** The session of a step-up. */
  sid: string | undefined;
}

interface TokenPayload {
  kind: PendingKind;
  purpose: SignInPurpose;
  sid?: string;
}

export interface SecondFactorsOptions {
  clock: Clock;
  factors: Factors;
  passkeys: Passkeys;
  oneTimeTokens: OneTimeTokens;
  users: Users;
}

export class SecondFactors {
  readonly #options: SecondFactorsOptions;

  constructor(options: SecondFactorsOptions) {
    this.#options = options;
  }

  /** True if the user has a second factor or a passkey: changes of factors then require one of them. */
  async hasFactor(userId: string): Promise<boolean> {
    const { factors, passkeys } = this.#options;
    const [confirmed, keys] = await Promise.all([factors.list(userId), passkeys.list(userId)]);
    return confirmed.length > 0 || keys.length > 0;
  }

  /** Issues the token of a sign-in that waits for one of `items`; `sid` is the session of a step-up. */
  async issue(
    userId: string,
    kind: PendingKind,
    purpose: SignInPurpose,
    items: readonly FactorItem[],
    sid?: string,
  ): Promise<FactorChallenge> {
    const payload: TokenPayload = { kind, purpose, ...(sid === undefined ? {} : { sid }) };
    return {
      mfa_token: await this.#options.oneTimeTokens.issue("mfa", {
        userId,
        payload,
        ttlMs: TOKEN_MS,
        attempts: ATTEMPTS_MAX,
      }),
      factors: items.map(({ id, type, name, sent_to }) => ({
        id,
        type,
        name,
        ...(sent_to === undefined ? {} : { sent_to }),
      })),
    };
  }

  /** The pending sign-in of a token, which stays valid; `undefined` if the token is used or expired. */
  async find(mfaToken: string): Promise<PendingSignIn | undefined> {
    const issued = await this.#options.oneTimeTokens.peek("mfa", mfaToken);
    if (issued === undefined || issued.attemptsLeft < 1) return undefined;
    const account = await this.#findUser(issued);
    const factors = await this.#options.factors.list(account.id);
    return { kind: readPayload(issued).kind, account, factors };
  }

  /** The user who may set up a factor with the token because a policy requires one. */
  async findEnrolling(mfaToken: string): Promise<Account> {
    const issued = await this.#options.oneTimeTokens.peek("mfa", mfaToken);
    if (issued === undefined || readPayload(issued).kind !== "enrol") throw createBadToken();
    const account = await this.#findUser(issued);
    if (await this.hasFactor(account.id)) throw createBadToken();
    return account;
  }

  /** Sends a code of one of the user's factors; returns the masked address. */
  async send(mfaToken: string, factorId: string): Promise<string> {
    const issued = await this.#options.oneTimeTokens.peek("mfa", mfaToken);
    if (issued === undefined) throw createBadToken();
    const isKnown = readPayload(issued).kind !== "enrol";
    const { id } = await this.#findUser(issued);
    return this.#options.factors.send(id, factorId, isKnown ? mfaToken : undefined);
  }

  /** Uses one of the token's five attempts. Throws 401 if the token is invalid. */
  async beginAttempt(mfaToken: string): Promise<ContinuedSignIn> {
    const issued = await this.#options.oneTimeTokens.attempt("mfa", mfaToken);
    if (issued === undefined) throw createBadToken();
    const account = await this.#findUser(issued);
    const { kind, purpose, sid } = readPayload(issued);
    if (kind === "enrol" && (await this.hasFactor(account.id))) throw createBadToken();
    return { kind, account, purpose, sid };
  }

  /** Uses up the token after a successful attempt. Throws 401 if another request was first. */
  async complete(mfaToken: string): Promise<void> {
    if ((await this.#options.oneTimeTokens.redeem("mfa", mfaToken)) === undefined)
      throw createBadToken();
  }

  /** The challenge that a session must pass (RFC 9470 section 5); `undefined` if the session is sufficient. */
  async stepUp(
    account: Account,
    session: SessionInfo,
    wanted: { acrValues: readonly string[]; maxAgeMs: number | undefined },
    purpose: SignInPurpose = {},
  ): Promise<FactorChallenge | undefined> {
    const needsSecond = wanted.acrValues.includes("2") && session.acr !== "2";
    const isOld =
      wanted.maxAgeMs !== undefined &&
      this.#options.clock.now() - session.authTime > wanted.maxAgeMs;
    if (!needsSecond && !isOld) return undefined;
    const items = await this.#options.factors.list(account.id);
    if (needsSecond && items.length === 0) {
      throw new PlatformError("conflict", "There is no second factor: set one up first.");
    }
    return this.issue(account.id, "step-up", purpose, items, session.id);
  }

  async #findUser(issued: OneTimeToken): Promise<Account> {
    const account = await this.#options.users.find(issued.userId ?? "");
    if (account === undefined || account.disabled) throw createBadToken();
    return account;
  }
}

/** The 401 for an `mfa_token` that is used, expired or unknown. */
export function createBadToken(): PlatformError {
  return createUnauthorizedError("The mfa_token is invalid: it is used, expired or unknown.");
}

function readPayload(issued: OneTimeToken): TokenPayload {
  return issued.payload as TokenPayload;
}
