// Making accounts and changing what they sign in with: registration, password change, verification, recovery.
import { createValidationError } from "@platform/kernel/http";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import type { AuditLog } from "../audit/audit-log.ts";
import type { AuthDatabase } from "../database/schema.ts";
import type { Notifier } from "../notify/notifier.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { HashLane, PasswordHasher } from "./password-hasher.ts";
import type { PasswordPolicy } from "./password-policy.ts";
import type { Origin, Sessions } from "../session/sessions.ts";
import type { Throttle } from "../guard/throttle.ts";
import { networkOf, subscriberOf } from "../guard/network.ts";
import type { OneTimeTokenItem, OneTimeTokens } from "../guard/one-time-tokens.ts";
import type { Account } from "../user/account.ts";
import { isDeceptive } from "../user/deceptive-name.ts";
import { readEmail, readUsername } from "../user/username.ts";
import type { UserChange, Users } from "../user/users.ts";
import type { DeviceMarks } from "./device-marks.ts";
import { clearGuesses } from "./guessing.ts";
import type { SecurityNotices } from "./security-notices.ts";

const VERIFICATION_MS = 86_400_000;
/** How long a recovery link is good. */
export const RECOVERY_MS = 3_600_000;
const INVITATION_MS = 7 * 86_400_000;
const HOUR_MS = 3_600_000;
const FREE_MESSAGES = 5;
const FREE_MESSAGES_PER_ADDRESS = 20;

/** What somebody registers with, as it came. */
export interface Registration {
  username: string;
  password?: string | undefined;
  email?: string | undefined;
  name?: string | undefined;
  invitation?: string | undefined;
  /** Of `checkInvitation`, where a passkey names it already. */
  id?: string | undefined;
}

/** What this works with. */
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
  registration: "open" | "invitation" | "closed";
  /** Registrations without an invitation within an hour. */
  registrationsHourly: { perAddress: number; perNetwork: number };
  /** Told of what went wrong where the answer must not show it. */
  onHiddenError: (error: unknown) => void;
}

/** Registration, passwords, addresses, recovery. */
export class Credentials {
  readonly #options: CredentialsOptions;

  constructor(options: CredentialsOptions) {
    this.#options = options;
  }

  /** Makes an account for whoever asks, where registration is open to them. */
  async register(registration: Registration, origin: Origin): Promise<Account> {
    const { registration: mode, oneTimeTokens, audit } = this.#options;
    const { invitation } = registration;
    if (invitation === undefined && mode !== "open") {
      throw new PlatformError("forbidden", "Accounts are made by invitation or by administrators.");
    }
    this.#checkUser(registration);
    if (invitation === undefined) await this.#admitRegistration(origin);
    else if ((await oneTimeTokens.peek("invitation", invitation)) === undefined)
      throw badInvitation();
    const user = await this.#readUser(registration, "registration");
    // Taken after everything else has been checked: a typing error does not cost the invitation.
    if (
      invitation !== undefined &&
      (await oneTimeTokens.redeem("invitation", invitation)) === undefined
    ) {
      throw badInvitation();
    }
    const account = await this.#options.users.create(user);
    await audit.record({
      action: "user.register",
      actor: `user:${account.id}`,
      target: `user:${account.id}`,
      ip: origin.ip,
    });
    return account;
  }

  /** Makes an account on somebody's behalf. */
  async create(registration: Registration): Promise<Account> {
    return this.#options.users.create(await this.#readUser(registration));
  }

  /** Whether the start-up link's token still makes the first administrator. */
  async isSetUpLink(token: string): Promise<boolean> {
    return (await this.#options.oneTimeTokens.peek("setup", token)) !== undefined;
  }

  /** Makes the first administrator, for the holder of the start-up link. */
  async setUp(token: string, registration: Registration, origin: Origin): Promise<Account> {
    const { users, oneTimeTokens, audit } = this.#options;
    if ((await oneTimeTokens.peek("setup", token)) === undefined) throw badLink();
    const user = await this.#readUser(registration);
    const account = await users.createFirstAdministrator(user);
    await oneTimeTokens.redeem("setup", token);
    await audit.record({
      action: "admin.create",
      actor: `user:${account.id}`,
      target: `user:${account.id}`,
      ip: origin.ip,
    });
    return account;
  }

  /** Whoever may register under the name with the invitation, which is left good. */
  async checkInvitation(
    invitation: string,
    username: string,
  ): Promise<{ id: string; username: string; name: undefined }> {
    if ((await this.#options.oneTimeTokens.peek("invitation", invitation)) === undefined) {
      throw badInvitation();
    }
    const user = await this.#readUser({ username });
    if ((await this.#options.users.findRowByUsername(user.username)) !== undefined) {
      throw new PlatformError("conflict", "The name is taken.");
    }
    // The passkey has to name its user before there is one.
    return { id: this.#options.users.createId(), username: user.username, name: undefined };
  }

  /** An invitation for one registration within a week: its token, and the id that it is listed by. */
  async issueInvitation(): Promise<{ id: string; token: string }> {
    const { oneTimeTokens } = this.#options;
    const token = await oneTimeTokens.issue("invitation", { ttlMs: INVITATION_MS });
    return { id: oneTimeTokens.identify(token), token };
  }

  /** Invitations that nobody has used yet. */
  listInvitations(limit: number, after: string | undefined): Promise<OneTimeTokenItem[]> {
    return this.#options.oneTimeTokens.list("invitation", limit, after);
  }

  /** Takes an invitation back; whether there was one. */
  revokeInvitation(id: string): Promise<boolean> {
    return this.#options.oneTimeTokens.revokeById("invitation", id);
  }

  /** Changes the password; other sessions and all tokens of before end. */
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
    // Whoever has signed in with a passkey and has no password yet may set one.
    if (row?.password_hash !== null && !(await hasher.verify(row?.password_hash, current))) {
      throw createUnauthorizedError("The current password is wrong.");
    }
    await attempt.succeed();
    await this.#setPassword(account, next, sid, origin, "password.change");
  }

  /** Sends the link that verifies the account's address. */
  async beginVerification(account: Account): Promise<void> {
    const { notifier, oneTimeTokens, throttle, publicUrl } = this.#options;
    notifier.requireChannel();
    if (account.email === undefined) throw new PlatformError("conflict", "There is no address.");
    if (account.email_verified) throw new PlatformError("conflict", "The address is verified.");
    await throttle.begin({ key: `mail:verify:${account.id}`, free: FREE_MESSAGES }, []);
    const token = await oneTimeTokens.issue("email-verification", {
      userId: account.id,
      payload: account.email,
      ttlMs: VERIFICATION_MS,
    });
    await notifier.sendEmail({
      to: account.email,
      subject: "Verify your address",
      text: `Open this link to verify your address:\n\n${publicUrl}/verify-email?token=${token}\n\nIf you did not ask for it, ignore this message.\n`,
    });
  }

  /** Verifies the address that the link was sent to, if it still is the account's. */
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
    });
  }

  /** Sends a recovery link where the address is a verified one; says nothing about whether it is. */
  async beginRecovery(text: string, origin: Origin, deviceMark: string | undefined): Promise<void> {
    const { notifier, throttle, users, deviceMarks } = this.#options;
    notifier.requireChannel();
    const email = readEmail(text);
    const account = email === undefined ? undefined : await users.findByVerifiedEmail(email);
    const device = account && deviceMarks.read(deviceMark, account.username);
    const mailbox = email?.toLowerCase() ?? "none";
    await (device === undefined
      ? throttle.begin(
          { key: `mail:recovery:${mailbox} ${networkOf(origin.ip)}`, free: FREE_MESSAGES },
          [{ key: `mail:address:${subscriberOf(origin.ip)}`, free: FREE_MESSAGES_PER_ADDRESS }],
        )
      : throttle.begin({ key: `mail:device:${device}`, free: FREE_MESSAGES }, []));
    if (!(await this.#mayReceiveRecovery(mailbox))) return;
    // Not awaited: how long the delivery takes would tell that there is somebody.
    if (account !== undefined && !account.disabled) {
      void this.#sendRecovery(account).catch(this.#options.onHiddenError);
    }
  }

  // However many networks ask, a mailbox gets few messages. It is left at that without a word: links are good for longer
  // than the longest wait, so the mailbox holds one.
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

  /** Sends a recovery link to the address of the account, on an administrator's behalf; returns the address. */
  async sendRecoveryTo(account: Account): Promise<string> {
    const { notifier, throttle } = this.#options;
    notifier.requireChannel();
    if (account.email === undefined) throw new PlatformError("conflict", "There is no address.");
    if (account.disabled) throw new PlatformError("conflict", "The user is disabled.");
    await throttle.begin({ key: `mail:reset:${account.id}`, free: FREE_MESSAGES }, []);
    await this.#sendRecovery(account);
    return account.email;
  }

  /** Changes a user. Another address is to be verified anew, and links that were sent to the one of before are void. */
  async change(account: Account, change: UserChange): Promise<Account> {
    const { users, oneTimeTokens, notices } = this.#options;
    if (typeof change.name === "string") requireHonestName(change.name);
    if (change.email === undefined) return users.change(account.id, change);
    const email = change.email === null ? null : readEmail(change.email);
    if (email === undefined) throw invalid("email", "an email address");
    const changed = await users.change(account.id, { ...change, email });
    await oneTimeTokens.revoke(account.id, ["email-verification", "recovery"]);
    notices.tell(account, "email.change");
    return changed;
  }

  /**
   * Sets a new password for the holder of a recovery link; every session and token of before ends. The link proves who
   * they are: wrong passwords of others are forgotten, and the mark makes the browser one of the account's devices.
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
    this.#requireGoodPassword(password, [account.username, account.email], "new_password");
    if ((await oneTimeTokens.redeem("recovery", token)) === undefined) throw badLink();
    await this.#setPassword(account, password, undefined, origin, "password.recover");
    await clearGuesses(this.#options.database, account.username);
    return { account, deviceMark: this.#options.deviceMarks.create(account.username) };
  }

  /**
   * Ends everything that was issued to the user: sessions, grants, tokens. Returns how many sessions. One session may be
   * left, for it can have new tokens: those of before are void by the user's epoch, not by its `sid`.
   */
  async invalidate(userId: string, exceptSid?: string): Promise<number> {
    const { users, sessions, oauth } = this.#options;
    await users.raiseEpoch(userId);
    const ended = await sessions.endAll(userId, exceptSid);
    await oauth.revoker.revokeUser(userId);
    return ended;
  }

  /** Ends one session and its tokens. */
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
    this.#requireGoodPassword(password, [account.username, account.email], "new_password");
    await users.setPassword(account.id, await hasher.hash(password));
    await oneTimeTokens.revoke(account.id, ["recovery", "mfa", "mfa-code"]);
    await this.invalidate(account.id, sid);
    await audit.record({
      action,
      actor: `user:${account.id}`,
      target: `user:${account.id}`,
      ip: origin.ip,
    });
    notices.tell(account, action);
  }

  async #sendRecovery(account: Account): Promise<void> {
    const { notifier, oneTimeTokens, publicUrl } = this.#options;
    const token = await oneTimeTokens.issue("recovery", { userId: account.id, ttlMs: RECOVERY_MS });
    await notifier.sendEmail({
      to: account.email ?? "",
      subject: "Set a new password",
      text: `Open this link within an hour to set a new password for ${account.username}:\n\n${publicUrl}/recover?token=${token}\n\nIf you did not ask for it, ignore this message.\n`,
    });
  }

  async #admitRegistration({ ip }: Origin): Promise<void> {
    const { throttle, registrationsHourly: limits } = this.#options;
    await throttle.admit(
      [
        { key: `register:address:${ip}`, max: limits.perAddress, windowMs: HOUR_MS },
        { key: `register:network:${networkOf(ip)}`, max: limits.perNetwork, windowMs: HOUR_MS },
      ],
      "Too many accounts were registered from this address or network: try again later.",
    );
  }

  async #readUser(registration: Registration, lane?: HashLane) {
    const user = this.#checkUser(registration);
    const { password } = registration;
    const passwordHash =
      password === undefined ? undefined : await this.#options.hasher.hash(password, lane);
    return { ...user, passwordHash };
  }

  #checkUser(registration: Registration) {
    const username = readUsername(registration.username);
    if (username === undefined) {
      throw invalid(
        "username",
        "1 to 64 letters, digits and . _ @ + -, beginning with a letter or a digit",
      );
    }
    const email = registration.email === undefined ? undefined : readEmail(registration.email);
    if (registration.email !== undefined && email === undefined) {
      throw invalid("email", "an email address");
    }
    const { password, name } = registration;
    if (name !== undefined) requireHonestName(name);
    if (password !== undefined) this.#requireGoodPassword(password, [username, email], "password");
    return { id: registration.id, username, email, name };
  }

  #requireGoodPassword(
    password: string,
    names: readonly (string | undefined)[],
    path: string,
  ): void {
    const problem = this.#options.passwordPolicy.findProblem(password, names);
    if (problem !== undefined) throw invalid(path, problem);
  }
}

function requireHonestName(name: string): void {
  if (isDeceptive(name))
    throw invalid("name", "it holds characters that show it as something else");
}

function invalid(path: string, message: string): PlatformError {
  return createValidationError([{ in: "body", path, message }]);
}

function badInvitation(): PlatformError {
  return new PlatformError("forbidden", "The invitation is used, expired or none.");
}

function badLink(): PlatformError {
  return new PlatformError("forbidden", "The link is used, expired or none.");
}
