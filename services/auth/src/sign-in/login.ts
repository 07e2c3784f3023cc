// Signing in: checks a password within bounds, opens the session, and gives what a login answers.
import { createUnauthorizedError } from "@platform/kernel/errors";
import type { AuditLog } from "../audit/audit-log.ts";
import type { DeviceMarks } from "./device-marks.ts";
import { formatAccountKeys } from "./guessing.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { LoginTokens } from "../oauth/token/login-tokens.ts";
import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import type { Passkeys } from "../factor/passkeys.ts";
import type { PasswordHasher } from "./password-hasher.ts";
import type { SessionInfo } from "../session/session.ts";
import type { Origin, Proof, Sessions } from "../session/sessions.ts";
import type { Throttle } from "../guard/throttle.ts";
import { subscriberOf } from "../guard/network.ts";
import { toAccount, type Account } from "../user/account.ts";
import type { Users } from "../user/users.ts";

/** Failures that cost nothing. */
const freePerDevice = 10;
const freePerAddress = 100;

/** Somebody who has signed in. */
export interface SignedIn {
  account: Account;
  session: SessionInfo;
  /** The session's token. */
  sessionToken: string;
  /** Undefined where they were not asked for. */
  tokens: LoginTokens | undefined;
  /** Marks the device as one that this account has signed in on. */
  deviceMark: string;
}

/** What a sign-in is for. */
export interface SignInPurpose {
  scope?: string | undefined;
  /** The OAuth client that asks; policies may be bound to it. */
  clientId?: string | undefined;
  /** Whether tokens of the built-in client are wanted beside the session. Default true. */
  mint?: boolean;
}

/** How logins are counted. */
export type CountLogin = (method: string, result: string) => void;

/** What signing in works with. */
export interface LoginParts {
  users: Users;
  hasher: PasswordHasher;
  passkeys: Passkeys;
  throttle: Throttle;
  sessions: Sessions;
  oauth: OAuth;
  audit: AuditLog;
  count: CountLogin;
  deviceMarks: DeviceMarks;
}

/** Signs users in. */
export class Login {
  readonly #parts: LoginParts;

  constructor(parts: LoginParts) {
    this.#parts = parts;
  }

  /**
   * The user with this name and password. Unknown name, wrong password and disabled user are the same 401 after the same
   * time. Attempts from a device that has signed in to the account before are counted by themselves alone: nobody else
   * can lock its owner out.
   */
  async checkPassword(
    username: string,
    password: string,
    origin: Origin,
    deviceMark: string | undefined,
  ): Promise<Account> {
    const { users, hasher, throttle, audit, count, deviceMarks } = this.#parts;
    const device = deviceMarks.read(deviceMark, username);
    const { pair, account } = formatAccountKeys(username, origin.ip);
    const attempt = await (device === undefined
      ? throttle.begin(pair, [
          account,
          { key: `password:address:${subscriberOf(origin.ip)}`, free: freePerAddress },
        ])
      : throttle.begin({ key: `password:device:${device}`, free: freePerDevice }, []));
    const row = await users.findRowByUsername(username);
    const isRight = await hasher.verify(row?.password_hash, password);
    if (row === undefined || !isRight || row.disabled === 1) {
      count("password", "failure");
      await audit.record({
        action: "login",
        outcome: "failure",
        actor: "anonymous",
        target: row === undefined ? "" : `user:${row.id}`,
        ip: origin.ip,
        detail: { method: "password", ...(isRight ? { reason: "disabled" } : {}) },
      });
      throw createUnauthorizedError("The name or the password is wrong.");
    }
    await attempt.succeed();
    if (row.password_hash !== null && hasher.isStale(row.password_hash)) {
      await users.setPassword(row.id, await hasher.hash(password));
    }
    return toAccount(row);
  }

  /**
   * The user whose passkey has signed our challenge. Only failures are counted, by address: a signature cannot be guessed,
   * so a right one is never made to wait.
   */
  async checkPasskey(
    response: AuthenticationResponseJSON,
    origin: Origin,
  ): Promise<{ account: Account; amr: readonly string[] }> {
    const { users, passkeys, throttle, audit, count } = this.#parts;
    try {
      const { userId, amr } = await passkeys.finishLogin(response);
      const account = await users.find(userId);
      if (account === undefined || account.disabled) {
        throw createUnauthorizedError("The passkey is not valid.");
      }
      return { account, amr };
    } catch (error) {
      const key = `passkey:address:${subscriberOf(origin.ip)}`;
      await throttle.begin({ key, free: freePerAddress }, []);
      count("passkey", "failure");
      await audit.record({
        action: "login",
        outcome: "failure",
        actor: "anonymous",
        ip: origin.ip,
        detail: { method: "passkey" },
      });
      throw error;
    }
  }

  /** Opens the session of somebody who has proved who they are. */
  async open(
    account: Account,
    proof: Proof,
    origin: Origin,
    purpose: SignInPurpose,
  ): Promise<SignedIn> {
    const { sessions, oauth, audit, count } = this.#parts;
    const { session, token } = await sessions.open(account.id, proof, origin);
    const tokens =
      purpose.mint === false
        ? undefined
        : await oauth.loginTokens.mint(account, session, purpose.scope);
    count(proof.amr.join("+"), "success");
    await audit.record({
      action: "login",
      actor: `user:${account.id}`,
      target: `session:${session.id}`,
      ip: origin.ip,
      detail: { amr: proof.amr },
    });
    return {
      account,
      session,
      sessionToken: token,
      tokens,
      deviceMark: this.createDeviceMark(account),
    };
  }

  /** A mark for a device that the account has just signed in on. */
  createDeviceMark(account: Account): string {
    return this.#parts.deviceMarks.create(account.username);
  }
}
