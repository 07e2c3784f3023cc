// Registration of accounts: by users, by administrators, with invitations, and of the first administrator.
import { PlatformError } from "@platform/kernel/errors";
import type { AuditLog } from "../audit/audit-log.ts";
import { networkOf } from "../guard/network.ts";
import type { OneTimeTokenItem, OneTimeTokens } from "../guard/one-time-tokens.ts";
import type { Throttle } from "../guard/throttle.ts";
import type { Origin } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import { readEmail, readUsername } from "../user/username.ts";
import type { Users } from "../user/users.ts";
import {
  createInputError,
  EMAIL_FAULT,
  requireGoodPassword,
  requireHonestName,
} from "./account-input.ts";
import type { HashLane, PasswordHasher } from "./password-hasher.ts";
import type { PasswordPolicy } from "./password-policy.ts";

const INVITATION_MS = 7 * 86_400_000;
const HOUR_MS = 3_600_000;

/** A registration as it was submitted. */
export interface Registration {
  username: string;
  password?: string | undefined;
  email?: string | undefined;
  name?: string | undefined;
  invitation?: string | undefined;
  /** The id from `checkInvitation`, which the passkey already names. */
  id?: string | undefined;
}

/** Options of `Registrations`. */
export interface RegistrationsOptions {
  users: Users;
  hasher: PasswordHasher;
  passwordPolicy: PasswordPolicy;
  oneTimeTokens: OneTimeTokens;
  throttle: Throttle;
  audit: AuditLog;
  registration: "open" | "invitation" | "closed";
  /** Registrations without an invitation within an hour. */
  registrationsHourly: { perAddress: number; perNetwork: number };
}

/** Creates accounts. */
export class Registrations {
  readonly #options: RegistrationsOptions;

  constructor(options: RegistrationsOptions) {
    this.#options = options;
  }

  /** Registers an account, if registration is open to the caller. */
  async register(registration: Registration, origin: Origin): Promise<Account> {
    const { registration: mode, oneTimeTokens, audit } = this.#options;
    const { invitation } = registration;
    if (invitation === undefined && mode !== "open") {
      throw new PlatformError(
        "forbidden",
        "Registration requires an invitation or an administrator.",
      );
    }
    this.#checkUser(registration);
    if (invitation === undefined) await this.#admitRegistration(origin);
    else if ((await oneTimeTokens.peek("invitation", invitation)) === undefined)
      throw badInvitation();
    const user = await this.#readUser(registration, "registration");
    // Redeemed after all other checks, so that a typing error does not use up the invitation.
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
      userAgent: origin.userAgent,
    });
    return account;
  }

  /** Creates an account on behalf of an administrator. */
  async create(registration: Registration): Promise<Account> {
    return this.#options.users.create(await this.#readUser(registration));
  }

  /** True if the token of the start-up link can still create the first administrator. */
  async isSetUpLink(token: string): Promise<boolean> {
    return (await this.#options.oneTimeTokens.peek("setup", token)) !== undefined;
  }

  /** Creates the first administrator for the holder of the start-up link. */
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
      userAgent: origin.userAgent,
    });
    return account;
  }

  /**
   * The future user of an invitation, which stays valid. Throws 403 for an invalid invitation, 409 if the name is
   * taken.
   */
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
    // The passkey contains the user's id, so the id must exist before the user.
    return { id: this.#options.users.createId(), username: user.username, name: undefined };
  }

  /** Issues an invitation for one registration within a week; returns its token and its id in lists. */
  async issueInvitation(): Promise<{ id: string; token: string }> {
    const { oneTimeTokens } = this.#options;
    const token = await oneTimeTokens.issue("invitation", { ttlMs: INVITATION_MS });
    return { id: oneTimeTokens.identify(token), token };
  }

  /** Unused invitations. */
  listInvitations(limit: number, after: string | undefined): Promise<OneTimeTokenItem[]> {
    return this.#options.oneTimeTokens.list("invitation", limit, after);
  }

  /** Revokes an invitation; false if there was none. */
  revokeInvitation(id: string): Promise<boolean> {
    return this.#options.oneTimeTokens.revokeById("invitation", id);
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
      throw createInputError(
        "username",
        "1 to 64 letters, digits and . _ @ + -, starting with a letter or a digit",
        { code: "username" },
      );
    }
    const email = registration.email === undefined ? undefined : readEmail(registration.email);
    if (registration.email !== undefined && email === undefined) {
      throw createInputError("email", "an email address", EMAIL_FAULT);
    }
    const { password, name } = registration;
    if (name !== undefined) requireHonestName(name);
    if (password !== undefined)
      requireGoodPassword(this.#options.passwordPolicy, password, [username, email], "password");
    return { id: registration.id, username, email, name };
  }
}

function badInvitation(): PlatformError {
  return new PlatformError(
    "forbidden",
    "The invitation is invalid: it is used, expired or unknown.",
  );
}

function badLink(): PlatformError {
  return new PlatformError("forbidden", "The link is invalid: it is used, expired or unknown.");
}
