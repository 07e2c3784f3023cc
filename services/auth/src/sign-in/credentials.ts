// Changes of accounts and their credentials: password, email address, recovery, ending sessions.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { AuditLog } from "../audit/audit-log.ts";
import type { AuthDatabase } from "../database/schema.ts";
import { networkOf, subscriberOf } from "../guard/network.ts";
import type { OneTimeTokens } from "../guard/one-time-tokens.ts";
import type { Throttle } from "../guard/throttle.ts";
import type { Notifier } from "../notify/notifier.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { Origin, Sessions } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import { foldEmail, readEmail } from "../user/username.ts";
import type { UserChange, Users } from "../user/users.ts";
import {
  createInputError,
  EMAIL_FAULT,
  requireGoodPassword,
  requireHonestName,
} from "./account-input.ts";
import type { DeviceMarks } from "./device-marks.ts";
import { clearGuesses } from "./guessing.ts";
import type { PasswordHasher } from "./password-hasher.ts";
import type { PasswordPolicy } from "./password-policy.ts";
import type { SecurityNotices } from "./security-notices.ts";

const VERIFICATION_MS = 86_400_000;
/** Lifetime of a recovery link. */
export const RECOVERY_MS = 3_600_000;
const FREE_MESSAGES = 5;
const FREE_MESSAGES_PER_ADDRESS = 20;

/** Options of `Credentials`. */
export interface CredentialsOptions {
  database: AuthDatabase;
  deviceMarks: DeviceMarks;
  users: Users;
  hasher: PasswordHasher;
  passwordPolicy: PasswordPolicy;
  oneTimeTokens: OneTimeTokens;
  throttle: Throttle;
  sessions: Sessions;
  oauth: OAuth;
  notifier: Notifier;
  notices: SecurityNotices;
  audit: AuditLog;
  publicUrl: string;
  /** Called for errors that the response must not reveal. */
  onHiddenError: (error: unknown) => void;
}

/** Changes credentials. */
export class Credentials {
  readonly #options: CredentialsOptions;

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  /** Changes the password and ends all other sessions and tokens. */
  async changePassword(
    account: Account,
    current: string,
    next: string,
    sid: string | undefined,
    origin: Origin,
  ): Promise<void> {
    const { users, hasher, throttle } = this.#options;
    const row = await users.findRow(account.id);
    const attempt = await throttle.begin({ key: `password:change:${account.id}`, free: 10 }, []);
    // A user who signed in with a passkey and has no password may set one.
    if (row?.password_hash !== null && !(await hasher.verify(row?.password_hash, current))) {
      throw createUnauthorizedError("The current password is wrong.");
    }
    await attempt.succeed();
    await this.#setPassword(account, next, sid, origin, "password.change");
  }

  /**
   * Sends the link to a new account if it has an address and mail is configured. Errors are not reported: the account
   * exists, and its owner can request another link.
   */
  async welcome(account: Account): Promise<void> {
    if (account.email === undefined || !this.#options.notifier.isAvailable) return;
    await this.beginVerification(account).catch(() => undefined);
  }

  /** Sends a link that verifies the account's address. */
  async beginVerification(account: Account): Promise<void> {
    const { notifier, oneTimeTokens, throttle, publicUrl } = this.#options;
    notifier.requireChannel();
    if (account.email === undefined)
      throw new PlatformError("conflict", "The account has no email address.");
    if (account.email_verified)
      throw new PlatformError("conflict", "The address is already verified.");
    await throttle.begin({ key: `mail:verify:${account.id}`, free: FREE_MESSAGES }, []);
    const token = await oneTimeTokens.issue("email-verification", {
      userId: account.id,
      payload: account.email,
      ttlMs: VERIFICATION_MS,
    });
    await notifier.sendEmail({
      to: account.email,
      subject: "Verify your address",
      text: `Open this link to verify your address:\n\n${publicUrl}/verify-email?token=${token}\n\nIf you did not request it, ignore this message.\n`,
    });
  }

  /** Verifies the address that the link was sent to, if it is still the account's address. */
  async finishVerification(token: string, origin: Origin): Promise<void> {
    const { users, oneTimeTokens, audit } = this.#options;
    const issued = await oneTimeTokens.redeem("email-verification", token);
    if (issued?.userId === undefined) throw badLink();
    if (!(await users.verifyEmail(issued.userId, String(issued.payload)))) throw badLink();
    await audit.record({
      action: "email.verify",
      actor: `user:${issued.userId}`,
      target: `user:${issued.userId}`,
      ip: origin.ip,
      userAgent: origin.userAgent,
    });
  }

  /** Sends a recovery link if the address is a verified one. The result does not reveal whether it is. */
  async beginRecovery(text: string, origin: Origin, deviceMark: string | undefined): Promise<void> {
    const { notifier, throttle, users, deviceMarks } = this.#options;
    notifier.requireChannel();
    const email = readEmail(text);
    const account = email === undefined ? undefined : await users.findByVerifiedEmail(email);
    const device = account && deviceMarks.read(deviceMark, account.username);
    const mailbox = email === undefined ? "none" : foldEmail(email);
    await (device === undefined
      ? throttle.begin(
          { key: `mail:recovery:${mailbox} ${networkOf(origin.ip)}`, free: FREE_MESSAGES },
          [{ key: `mail:address:${subscriberOf(origin.ip)}`, free: FREE_MESSAGES_PER_ADDRESS }],
        )
      : throttle.begin({ key: `mail:device:${device}`, free: FREE_MESSAGES }, []));
    if (!(await this.#mayReceiveRecovery(mailbox))) return;
    // Not awaited: the duration of the delivery would reveal that the address exists.
    if (account !== undefined && !account.disabled) {
      void this.#sendRecovery(account).catch(this.#options.onHiddenError);
    }
  }

  async #change(userId: string, change: UserChange): Promise<Account> {
    const { users, oauth } = this.#options;
    let notify: (() => void) | undefined;
    const account = await users.change(userId, change, async (trx) => {
      notify = await oauth.revoker.revokeUser(userId, trx);
    });
    notify?.();
    return account;
  }

  // A mailbox receives few messages regardless of the number of networks. Further requests are ignored silently: a
  // link is valid for longer than the longest delay, so the mailbox already has one.
  async #mayReceiveRecovery(mailbox: string): Promise<boolean> {
    try {
      await this.#options.throttle.begin(
        { key: `mail:mailbox:${mailbox}`, free: FREE_MESSAGES },
        [],
      );
      return true;
    } catch (error) {
      if (error instanceof PlatformError && error.code === "too_many_requests") return false;
      throw error;
    }
  }

  /** Sends a recovery link to the account's address on behalf of an administrator; returns the address. */
  async sendRecoveryTo(account: Account): Promise<string> {
    const { notifier, throttle } = this.#options;
    notifier.requireChannel();
    if (account.email === undefined)
      throw new PlatformError("conflict", "The account has no email address.");
    if (account.disabled) throw new PlatformError("conflict", "The user is disabled.");
    await throttle.begin({ key: `mail:reset:${account.id}`, free: FREE_MESSAGES }, []);
    await this.#sendRecovery(account);
    return account.email;
  }

  /** Changes a user. A new address must be verified again, and links sent to the previous one become invalid. */
  async change(account: Account, change: UserChange): Promise<Account> {
    const { oneTimeTokens, notices } = this.#options;
    if (typeof change.name === "string") requireHonestName(change.name);
    if (change.email === undefined) return this.#change(account.id, change);
    const email = change.email === null ? null : readEmail(change.email);
    if (email === undefined) throw createInputError("email", "an email address", EMAIL_FAULT);
    const changed = await this.#change(account.id, { ...change, email });
    await oneTimeTokens.revoke(account.id, ["email-verification", "recovery"]);
    notices.tell(account, "email.change");
    return changed;
  }

  /** Deletes a user; what was issued to them is revoked in the same transaction. */
  async delete(userId: string): Promise<void> {
    const { users, oauth } = this.#options;
    let notify: (() => void) | undefined;
    await users.delete(userId, async (trx) => {
      notify = await oauth.revoker.revokeUser(userId, trx);
    });
    notify?.();
  }

  /**
   * Sets a new password for the holder of a recovery link and ends all sessions and tokens. The link proves the
   * user's identity: failed attempts of others are forgotten, and the mark makes the browser a known device.
   */
  async finishRecovery(
    token: string,
    password: string,
    origin: Origin,
  ): Promise<{ account: Account; deviceMark: string }> {
    const { users, oneTimeTokens } = this.#options;
    const found = await oneTimeTokens.peek("recovery", token);
    const account = found?.userId === undefined ? undefined : await users.find(found.userId);
    if (account === undefined || account.disabled) throw badLink();
    requireGoodPassword(
      this.#options.passwordPolicy,
      password,
      [account.username, account.email],
      "new_password",
    );
    if ((await oneTimeTokens.redeem("recovery", token)) === undefined) throw badLink();
    await this.#setPassword(account, password, undefined, origin, "password.recover");
    await clearGuesses(this.#options.database, account.username);
    return { account, deviceMark: this.#options.deviceMarks.create(account.username) };
  }

  /**
   * Ends all sessions, grants and tokens of the user; returns the number of sessions. `exceptSid` is kept and can get
   * new tokens: the earlier ones are void by the user's epoch, not by their `sid`.
   */
  async invalidate(userId: string, exceptSid?: string): Promise<number> {
    const { users, sessions, oauth, database } = this.#options;
    const { ended, notify } = await database.transaction(async (trx) => {
      await users.raiseEpoch(userId, trx);
      return {
        ended: await sessions.endAll(userId, exceptSid, trx),
        notify: await oauth.revoker.revokeUser(userId, trx),
      };
    });
    notify();
    return ended;
  }

  /** Ends a session and its tokens. */
  async endSession(sid: string, userId?: string): Promise<boolean> {
    const ended = await this.#options.sessions.end(sid, userId);
    if (ended) await this.#options.oauth.revoker.revokeSession(sid);
    return ended;
  }

  async #setPassword(
    account: Account,
    password: string,
    sid: string | undefined,
    origin: Origin,
    action: "password.change" | "password.recover",
  ): Promise<void> {
    const { users, hasher, oneTimeTokens, audit, notices } = this.#options;
    requireGoodPassword(
      this.#options.passwordPolicy,
      password,
      [account.username, account.email],
      "new_password",
    );
    await users.setPassword(account.id, await hasher.hash(password));
    await oneTimeTokens.revoke(account.id, ["recovery", "mfa", "mfa-code"]);
    await this.invalidate(account.id, sid);
    await audit.record({
      action,
      actor: `user:${account.id}`,
      target: `user:${account.id}`,
      ip: origin.ip,
      userAgent: origin.userAgent,
    });
    notices.tell(account, action);
  }

  async #sendRecovery(account: Account): Promise<void> {
    const { notifier, oneTimeTokens, publicUrl } = this.#options;
    const token = await oneTimeTokens.issue("recovery", { userId: account.id, ttlMs: RECOVERY_MS });
    await notifier.sendEmail({
      to: account.email ?? "",
      subject: "Set a new password",
      text: `Open this link within an hour to set a new password for ${account.username}:\n\n${publicUrl}/recover?token=${token}\n\nIf you did not request it, ignore this message.\n`,
    });
  }
}

function badLink(): PlatformError {
  return new PlatformError("forbidden", "The link is invalid: it is used, expired or unknown.");
}
