// Signing in: a password or a passkey, a second factor if one is needed, then a session and its tokens.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import type { AuditLog } from "../audit/audit-log.ts";
import type { Factors } from "../factor/factors.ts";
import type { MfaPolicies } from "../factor/policies.ts";
import type { OneTimeTokens } from "../guard/one-time-tokens.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { LoginTokens } from "../oauth/token/login-tokens.ts";
import type { SessionInfo } from "../session/session.ts";
import type { OpenedSession, Origin, Proof, Sessions } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import type { CountLogin, CredentialVerifier } from "./credential-verifier.ts";
import type { DeviceMarks } from "./device-marks.ts";
import {
  createBadToken,
  type FactorChallenge,
  type SecondFactors,
  type SignInPurpose,
} from "./second-factors.ts";
import type { SecurityNotices } from "./security-notices.ts";

/** The credentials of one step of a sign-in. */
export type SignInProof =
  | {
      kind: "password";
      username: string;
      password: string;
      /** The device mark of the browser: attempts from a known device are throttled separately. */
      deviceMark: string | undefined;
    }
  | { kind: "passkey"; response: AuthenticationResponseJSON }
  /** The user has just set a password while registering. */
  | { kind: "registration"; account: Account }
  /** Continues a pending sign-in with a code, or a step-up of a user without factors with the password. */
  | {
      kind: "pending";
      mfaToken: string;
      code?: string | undefined;
      password?: string | undefined;
      /** The factor to confirm, if the sign-in waits for its enrolment. */
      factorId?: string | undefined;
      deviceMark?: string | undefined;
    };

/** The result of one step of a sign-in. */
export type SignInOutcome =
  | { kind: "signed-in"; signedIn: SignedIn }
  | { kind: "factor"; challenge: FactorChallenge }
  /** A policy requires a second factor and the user has a passkey: they must sign in with the passkey. */
  | { kind: "passkey" };

/** A completed sign-in. */
export interface SignedIn {
  account: Account;
  session: SessionInfo;
  /** The session's token. */
  sessionToken: string;
  /** Absent if the purpose has `mint: false`. */
  tokens: LoginTokens | undefined;
  /** Marks the device as one that this account has signed in on. */
  deviceMark: string;
}

export interface SignInOptions {
  verifier: CredentialVerifier;
  secondFactors: SecondFactors;
  factors: Factors;
  policies: MfaPolicies;
  oneTimeTokens: OneTimeTokens;
  sessions: Sessions;
  oauth: OAuth;
  audit: AuditLog;
  notices: SecurityNotices;
  deviceMarks: DeviceMarks;
  countLogin: CountLogin;
}

/** Signs users in, for the API and the pages alike. */
export class SignIn {
  readonly #options: SignInOptions;

  constructor(options: SignInOptions) {
    this.#options = options;
  }

  /**
   * Takes one step of a sign-in. Throws 401 for wrong credentials and invalid tokens, 429 while the caller has to wait.
   * The purpose of a pending sign-in is the one that it began with.
   */
  async signIn(
    proof: SignInProof,
    origin: Origin,
    purpose: SignInPurpose = {},
  ): Promise<SignInOutcome> {
    const { verifier } = this.#options;
    switch (proof.kind) {
      case "password": {
        const { username, password, deviceMark } = proof;
        const account = await verifier.checkPassword(username, password, origin, deviceMark);
        return this.#continueAfterPassword(account, origin, purpose);
      }
      case "registration":
        return this.#continueAfterPassword(proof.account, origin, purpose);
      case "passkey": {
        const { account, amr } = await verifier.checkPasskey(proof.response, origin);
        return this.#open(account, { amr, acr: "2" }, origin, purpose);
      }
      case "pending":
        return { kind: "signed-in", signedIn: await this.#continuePending(proof, origin) };
      default:
        return proof satisfies never;
    }
  }

  /** Raises a session to two factors with a passkey of its user. Throws 401 for a passkey of another user. */
  async confirmWithPasskey(
    account: Account,
    session: SessionInfo,
    response: AuthenticationResponseJSON,
    origin: Origin,
  ): Promise<SignedIn> {
    const checked = await this.#options.verifier.checkPasskey(response, origin);
    if (checked.account.id !== account.id) {
      throw createUnauthorizedError("The passkey belongs to another account.");
    }
    const amr = [...new Set([...session.amr, ...checked.amr])];
    const opened = await this.#options.sessions.elevate(session.id, { amr, acr: "2" });
    if (opened === undefined) throw new PlatformError("conflict", "The session has ended.");
    return this.#describe(account, opened, { mint: false });
  }

  /**
   * Ends everything that a password alone has opened, now that the user has a factor: other sessions with their
   * tokens, sign-ins and registrations in progress. The session in which the factor was enrolled is raised to two
   * factors and gets a new token.
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

  // Users with a factor always need it; policies require the others to enrol one.
  async #continueAfterPassword(
    account: Account,
    origin: Origin,
    purpose: SignInPurpose,
  ): Promise<SignInOutcome> {
    const { factors, policies, secondFactors } = this.#options;
    const items = await factors.list(account.id);
    if (items.length > 0) {
      const challenge = await secondFactors.issue(account.id, "login", purpose, items);
      return { kind: "factor", challenge };
    }
    if (await policies.requires(account.id, purpose.clientId)) {
      // A password alone must not add a factor to an account with a passkey, which is one.
      if (await secondFactors.hasFactor(account.id)) return { kind: "passkey" };
      const challenge = await secondFactors.issue(account.id, "enrol", purpose, []);
      return { kind: "factor", challenge: { ...challenge, enrolment_required: true } };
    }
    return this.#open(account, { amr: ["pwd"], acr: "1" }, origin, purpose);
  }

  async #continuePending(
    proof: Extract<SignInProof, { kind: "pending" }>,
    origin: Origin,
  ): Promise<SignedIn> {
    const { secondFactors, factors, verifier, notices } = this.#options;
    const { mfaToken, code, password = "", factorId = "", deviceMark } = proof;
    const pending = await secondFactors.beginAttempt(mfaToken);
    const { kind, account, purpose, sid } = pending;
    let amr: readonly string[] = [];
    if (code !== undefined) {
      const checking =
        kind === "enrol"
          ? factors.confirm(account.id, factorId, code)
          : factors.verify(account.id, code, mfaToken);
      amr = (await this.#recordFailure(checking, account, origin)).amr;
    } else {
      const isEnough = kind === "step-up" && (await factors.list(account.id)).length === 0;
      if (!isEnough) throw new PlatformError("bad_request", "A code is required.");
      await verifier.checkPassword(account.username, password, origin, deviceMark);
    }
    await secondFactors.complete(mfaToken);
    if (kind === "enrol") {
      notices.tell(account, "mfa.enrol");
      await this.#endSingleFactor(account.id, undefined);
    }
    if (kind === "step-up") return this.#elevate(account, sid ?? "", amr, purpose);
    const acr = amr.length > 0 ? "2" : "1";
    const opened = await this.#open(account, { amr: ["pwd", ...amr, "mfa"], acr }, origin, purpose);
    return opened.signedIn;
  }

  async #recordFailure<T>(check: Promise<T>, account: Account, origin: Origin): Promise<T> {
    try {
      return await check;
    } catch (error) {
      if (error instanceof PlatformError && error.code === "unauthorized") {
        await this.#options.audit.record({
          action: "login",
          outcome: "failure",
          actor: "anonymous",
          target: `user:${account.id}`,
          ...origin,
          detail: { method: "code" },
        });
      }
      throw error;
    }
  }

  async #open(
    account: Account,
    proof: Proof,
    origin: Origin,
    purpose: SignInPurpose,
  ): Promise<Extract<SignInOutcome, { kind: "signed-in" }>> {
    const { sessions, audit, countLogin, oauth } = this.#options;
    const opened = await sessions.open(account.id, proof, origin);
    for (const sid of opened.displaced ?? []) await oauth.revoker.revokeSession(sid);
    const signedIn = await this.#describe(account, opened, purpose);
    countLogin(proof.amr.join("+"), "success");
    await audit.record({
      action: "login",
      actor: `user:${account.id}`,
      target: `session:${opened.session.id}`,
      ip: origin.ip,
      userAgent: origin.userAgent,
      detail: { amr: proof.amr },
    });
    return { kind: "signed-in", signedIn };
  }

  async #endSingleFactor(userId: string, exceptSid: string | undefined): Promise<void> {
    const { oneTimeTokens, sessions, oauth } = this.#options;
    await oneTimeTokens.revoke(userId, ["mfa", "passkey-registration"]);
    for (const sid of await sessions.endSingleFactor(userId, exceptSid))
      await oauth.revoker.revokeSession(sid);
  }

  async #elevate(
    account: Account,
    sid: string,
    amr: readonly string[],
    purpose: SignInPurpose,
  ): Promise<SignedIn> {
    const { sessions } = this.#options;
    const before = await sessions.find(sid);
    const isSecond = amr.length > 0;
    const opened =
      before === undefined
        ? undefined
        : await sessions.elevate(sid, {
            amr: [...new Set([...before.amr, ...amr, ...(isSecond ? ["mfa"] : [])])],
            acr: isSecond ? "2" : before.acr,
          });
    if (opened === undefined) throw createBadToken();
    return this.#describe(account, opened, purpose);
  }

  async #describe(
    account: Account,
    { session, token }: OpenedSession,
    { mint = true, scope }: SignInPurpose,
  ): Promise<SignedIn> {
    const { oauth, deviceMarks } = this.#options;
    return {
      account,
      session,
      sessionToken: token,
      tokens: mint ? await oauth.loginTokens.mint(account, session, scope) : undefined,
      deviceMark: deviceMarks.create(account.username),
    };
  }
}
