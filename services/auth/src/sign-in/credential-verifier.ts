// Verification of passwords and passkeys: throttled, counted and audited.
import { createUnauthorizedError } from "@platform/kernel/errors";
import type { AuthenticationResponseJSON } from "@simplewebauthn/server";
import type { AuditLog } from "../audit/audit-log.ts";
import type { Passkeys } from "../factor/passkeys.ts";
import { subscriberOf } from "../guard/network.ts";
import type { Throttle } from "../guard/throttle.ts";
import type { Origin } from "../session/sessions.ts";
import { toAccount, type Account } from "../user/account.ts";
import type { Users } from "../user/users.ts";
import type { DeviceMarks } from "./device-marks.ts";
import { formatAccountKeys } from "./guessing.ts";
import type { PasswordHasher } from "./password-hasher.ts";

/** Failures without a delay. */
const FREE_PER_DEVICE = 10;
const FREE_PER_ADDRESS = 100;

/** Counts a sign-in by method and result. */
export type CountLogin = (method: string, result: string) => void;

/** Options of the credential verifier. */
export interface CredentialVerifierOptions {
  users: Users;
  hasher: PasswordHasher;
  passkeys: Passkeys;
  throttle: Throttle;
  audit: AuditLog;
  countLogin: CountLogin;
  deviceMarks: DeviceMarks;
}

export class CredentialVerifier {
  readonly #options: CredentialVerifierOptions;

  constructor(options: CredentialVerifierOptions) {
    this.#options = options;
  }

  /**
   * The user with this name and password. An unknown name, a wrong password and a disabled user cause the same 401 after
   * the same time. Attempts from a device that has signed in to the account before are counted separately, so that
   * attackers cannot lock the owner out.
   */
  async checkPassword(
    username: string,
    password: string,
    origin: Origin,
    deviceMark: string | undefined,
  ): Promise<Account> {
    const { users, hasher, throttle, audit, countLogin, deviceMarks } = this.#options;
    const device = deviceMarks.read(deviceMark, username);
    const { pair, account } = formatAccountKeys(username, origin.ip);
    const attempt = await (device === undefined
      ? throttle.begin(pair, [
          account,
          { key: `password:address:${subscriberOf(origin.ip)}`, free: FREE_PER_ADDRESS },
        ])
      : throttle.begin({ key: `password:device:${device}`, free: FREE_PER_DEVICE }, []));
    const row = await users.findRowByUsername(username);
    const isRight = await hasher.verify(row?.password_hash, password);
    if (row === undefined || !isRight || row.disabled === 1) {
      countLogin("password", "failure");
      await audit.record({
        action: "login",
        outcome: "failure",
        actor: "anonymous",
        target: row === undefined ? "" : `user:${row.id}`,
        ip: origin.ip,
        userAgent: origin.userAgent,
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
   * The user whose passkey signed the challenge, and the methods of RFC 8176. Only failures are counted, by address: a
   * signature cannot be guessed, so valid ones are never delayed.
   */
  async checkPasskey(
    response: AuthenticationResponseJSON,
    origin: Origin,
  ): Promise<{ account: Account; amr: readonly string[] }> {
    const { users, passkeys, throttle, audit, countLogin } = this.#options;
    try {
      const { userId, amr } = await passkeys.finishLogin(response);
      const account = await users.find(userId);
      if (account === undefined || account.disabled) {
        throw createUnauthorizedError("The passkey is not valid.");
      }
      return { account, amr };
    } catch (error) {
      const key = `passkey:address:${subscriberOf(origin.ip)}`;
      await throttle.begin({ key, free: FREE_PER_ADDRESS }, []);
      countLogin("passkey", "failure");
      await audit.record({
        action: "login",
        outcome: "failure",
        actor: "anonymous",
        ip: origin.ip,
        userAgent: origin.userAgent,
        detail: { method: "passkey" },
      });
      throw error;
    }
  }
}
