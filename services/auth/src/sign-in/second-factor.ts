// After the first factor: whether a second one is needed, and what its code gives: a session, an enrolment, a step up.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { FactorItem, Factors } from "../factor/factors.ts";
import type { MfaPolicies } from "../factor/policies.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { Passkeys } from "../factor/passkeys.ts";
import type { SessionInfo } from "../session/session.ts";
import type { Origin, Sessions } from "../session/sessions.ts";
import type { Ticket, Tickets } from "../guard/one-time-tokens.ts";
import type { Account } from "../user/account.ts";
import type { Users } from "../user/users.ts";
import type { Login, SignedIn, SignInPurpose } from "./login.ts";
import type { SecurityNotices } from "./security-notices.ts";

const ticketMs = 300_000;
const attempts = 5;

/** What the first factor leads to. */
export type SignInOutcome =
  | { kind: "signed-in"; signedIn: SignedIn }
  | { kind: "factor"; challenge: FactorChallenge }
  /** A policy requires a second factor and the user has a passkey: they sign in with that. */
  | { kind: "passkey" };

/** What a second factor is asked with. */
export interface FactorChallenge {
  mfa_token: string;
  factors: { id: string; type: string; name: string; sent_to?: string }[];
  /** A policy asks for a factor that the user does not have yet: it is set up with this token. */
  enrolment_required?: true;
}

/** A sign-in that waits for its second factor. */
export interface PendingSignIn {
  kind: "login" | "enrol" | "step-up";
  account: Account;
  factors: readonly FactorItem[];
}

/** What a ticket stands for. */
interface TicketPayload {
  kind: "login" | "enrol" | "step-up";
  purpose: SignInPurpose;
  sid?: string;
}

/** What this works with. */
export interface SecondFactorParts {
  factors: Factors;
  policies: MfaPolicies;
  tickets: Tickets;
  users: Users;
  sessions: Sessions;
  oauth: OAuth;
  login: Login;
  notices: SecurityNotices;
  passkeys: Passkeys;
}

/** Second factors at sign-in. */
export class SecondFactor {
  readonly #parts: SecondFactorParts;

  constructor(parts: SecondFactorParts) {
    this.#parts = parts;
  }

  /** Goes on after a right password: users with a factor are always asked, policies ask those who have none to get one. */
  async proceed(account: Account, origin: Origin, purpose: SignInPurpose): Promise<SignInOutcome> {
    const { factors, policies, login } = this.#parts;
    const items = await factors.list(account.id);
    if (items.length > 0) {
      return { kind: "factor", challenge: await this.#ask(account.id, "login", purpose, items) };
    }
    if (await policies.requires(account.id, purpose.clientId)) {
      // A password alone must not add a factor beside the passkey, which is one.
      if (await this.hasFactor(account.id)) return { kind: "passkey" };
      const challenge = await this.#ask(account.id, "enrol", purpose, []);
      return { kind: "factor", challenge: { ...challenge, enrolment_required: true } };
    }
    const proof = { amr: ["pwd"], acr: "1" };
    return { kind: "signed-in", signedIn: await login.open(account, proof, origin, purpose) };
  }

  /** What a token waits for; undefined where it is used, expired or none. It is left good. */
  async describe(mfaToken: string): Promise<PendingSignIn | undefined> {
    const ticket = await this.#parts.tickets.peek("mfa", mfaToken);
    if (ticket === undefined || ticket.attemptsLeft < 1) return undefined;
    const account = await this.#findUser(ticket);
    const factors = await this.#parts.factors.list(account.id);
    return { kind: readPayload(ticket).kind, account, factors };
  }

  /** The user who may set up a factor with the token, because a policy asks them to. */
  async findEnrolling(mfaToken: string): Promise<Account> {
    const ticket = await this.#parts.tickets.peek("mfa", mfaToken);
    if (ticket === undefined || readPayload(ticket).kind !== "enrol") throw badToken();
    const account = await this.#findUser(ticket);
    if (await this.hasFactor(account.id)) throw badToken();
    return account;
  }

  /** True if the user has a second factor or a passkey: what they sign in with is changed with one of them only. */
  async hasFactor(userId: string): Promise<boolean> {
    const { factors, passkeys } = this.#parts;
    const [confirmed, keys] = await Promise.all([factors.list(userId), passkeys.list(userId)]);
    return confirmed.length > 0 || keys.length > 0;
  }

  /**
   * Ends what a password alone has opened, now that there is a factor: other sessions with their tokens, sign-ins and
   * registrations in progress. The session that it was shown in becomes one of two factors, with a new token.
   */
  async completeEnrolment(
    account: Account,
    sid: string,
    amr: readonly string[],
    purpose: SignInPurpose,
  ): Promise<SignedIn> {
    await this.#endSingleFactor(account.id, sid);
    return this.#elevate(account, sid, amr, purpose);
  }

  async #endSingleFactor(userId: string, exceptSid: string | undefined): Promise<void> {
    const { tickets, sessions, oauth } = this.#parts;
    await tickets.revoke(userId, ["mfa", "passkey-registration"]);
    for (const sid of await sessions.endSingleFactor(userId, exceptSid))
      await oauth.revoker.revokeSession(sid);
  }

  /** Sends a code of one of the user's factors; returns where to, mostly hidden. */
  async send(mfaToken: string, factorId: string): Promise<string> {
    const ticket = await this.#parts.tickets.peek("mfa", mfaToken);
    if (ticket === undefined) throw badToken();
    const isKnown = readPayload(ticket).kind !== "enrol";
    return this.#parts.factors.send(
      (await this.#findUser(ticket)).id,
      factorId,
      isKnown ? mfaToken : undefined,
    );
  }

  /**
   * Checks a code (or for a step up without factors the password) and gives what the token was for. A token has five
   * attempts and is used up by the first right one.
   */
  async verify(
    mfaToken: string,
    proof: {
      code?: string | undefined;
      password?: string | undefined;
      factorId?: string | undefined;
      /** Of the browser that sends the password: from a known device it is throttled by that alone. */
      deviceMark?: string | undefined;
    },
    origin: Origin,
  ): Promise<SignedIn> {
    const { tickets, factors, login, notices } = this.#parts;
    const ticket = await tickets.attempt("mfa", mfaToken);
    if (ticket === undefined) throw badToken();
    const account = await this.#findUser(ticket);
    const { kind, purpose, sid } = readPayload(ticket);
    if (kind === "enrol" && (await this.hasFactor(account.id))) throw badToken();
    let amr: readonly string[];
    if (proof.code !== undefined) {
      const checked =
        kind === "enrol"
          ? await factors.confirm(account.id, proof.factorId ?? "", proof.code)
          : await factors.verify(account.id, proof.code, mfaToken);
      amr = checked.amr;
    } else {
      const isEnough = kind === "step-up" && (await factors.list(account.id)).length === 0;
      if (!isEnough) throw new PlatformError("bad_request", "A code is needed.");
      const { password = "", deviceMark } = proof;
      await login.checkPassword(account.username, password, origin, deviceMark);
      amr = [];
    }
    if ((await tickets.take("mfa", mfaToken)) === undefined) throw badToken();
    const isSecond = amr.length > 0;
    if (kind === "enrol") {
      notices.tell(account, "mfa.enrol");
      await this.#endSingleFactor(account.id, undefined);
    }
    if (kind === "step-up") return this.#elevate(account, sid ?? "", amr, purpose);
    return login.open(
      account,
      { amr: ["pwd", ...amr, "mfa"], acr: isSecond ? "2" : "1" },
      origin,
      purpose,
    );
  }

  /** What a session lacks for what is asked; undefined where it lacks nothing. RFC 9470 section 5 */
  async stepUp(
    account: Account,
    session: SessionInfo,
    wanted: { acrValues: readonly string[]; maxAgeMs: number | undefined },
    nowMs: number,
    purpose: SignInPurpose = {},
  ): Promise<FactorChallenge | undefined> {
    const needsSecond = wanted.acrValues.includes("2") && session.acr !== "2";
    const isOld = wanted.maxAgeMs !== undefined && nowMs - session.authTime > wanted.maxAgeMs;
    if (!needsSecond && !isOld) return undefined;
    const items = await this.#parts.factors.list(account.id);
    if (needsSecond && items.length === 0) {
      throw new PlatformError("conflict", "There is no second factor: set one up first.");
    }
    return this.#ask(account.id, "step-up", purpose, items, session.id);
  }

  async #elevate(
    account: Account,
    sid: string,
    amr: readonly string[],
    purpose: SignInPurpose,
  ): Promise<SignedIn> {
    const { sessions, oauth, login } = this.#parts;
    const before = await sessions.find(sid);
    const isSecond = amr.length > 0;
    const opened =
      before === undefined
        ? undefined
        : await sessions.elevate(sid, {
            amr: [...new Set([...before.amr, ...amr, ...(isSecond ? ["mfa"] : [])])],
            acr: isSecond ? "2" : before.acr,
          });
    if (opened === undefined) throw badToken();
    return {
      account,
      session: opened.session,
      sessionToken: opened.token,
      tokens:
        purpose.mint === false
          ? undefined
          : await oauth.loginTokens.mint(account, opened.session, purpose.scope),
      deviceMark: login.createDeviceMark(account),
    };
  }

  async #ask(
    userId: string,
    kind: TicketPayload["kind"],
    purpose: SignInPurpose,
    items: readonly FactorItem[],
    sid?: string,
  ): Promise<FactorChallenge> {
    const payload: TicketPayload = { kind, purpose, ...(sid === undefined ? {} : { sid }) };
    return {
      mfa_token: await this.#parts.tickets.issue("mfa", {
        userId,
        payload,
        ttlMs: ticketMs,
        attempts,
      }),
      factors: items.map(({ id, type, name, sent_to }) => ({
        id,
        type,
        name,
        ...(sent_to === undefined ? {} : { sent_to }),
      })),
    };
  }

  async #findUser(ticket: Ticket): Promise<Account> {
    const account = await this.#parts.users.find(ticket.userId ?? "");
    if (account === undefined || account.disabled) throw badToken();
    return account;
  }
}

/** The 403 for a right password of a user who must sign in with their passkey. */
export function createPasskeyRequired(): PlatformError {
  return new PlatformError("mfa_required", "A passkey is needed to sign in.", {
    fields: { factors: [], passkey_required: true },
  });
}

/** The 403 that says a second factor is needed, and with what. */
export function createFactorRequired(challenge: FactorChallenge): PlatformError {
  const detail =
    challenge.enrolment_required === true
      ? "A second factor must be set up to sign in."
      : "A second factor is needed to sign in.";
  return new PlatformError("mfa_required", detail, { fields: { ...challenge } });
}

function readPayload(ticket: Ticket): TicketPayload {
  return ticket.payload as TicketPayload;
}

function badToken(): PlatformError {
  return createUnauthorizedError("The mfa_token is used, expired or none.");
}
