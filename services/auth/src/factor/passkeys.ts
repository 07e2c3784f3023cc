// Passkeys (WebAuthn): registered after a fresh sign-in or with an invitation, and sufficient to sign in.
import { isUniqueViolation } from "@platform/kernel/db";
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import type {
  AuthenticationResponseJSON,
  PublicKeyCredentialCreationOptionsJSON,
  PublicKeyCredentialRequestOptionsJSON,
  RegistrationResponseJSON,
} from "@simplewebauthn/server";
import type { PasskeyRow } from "../database/passkey.ts";
import type { AuthDatabase } from "../database/schema.ts";
import type { OneTimeToken, OneTimeTokens } from "../guard/one-time-tokens.ts";
import { formatTime } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import { isDeceptive } from "../user/deceptive-name.ts";
import { nameAuthenticator } from "./authenticators.ts";

const CHALLENGE_MS = 300_000;
const PASSKEYS_MAX = 30;
/** EdDSA, ES256 and RS256 as COSE numbers. */
const ALGORITHMS = [-8, -7, -257];
/** Loaded at the first use of a passkey: its certificate parsers are a fifth of the time of a start. */
const loadWebAuthn = () => import("@simplewebauthn/server");

/** A passkey as its owner sees it. */
export interface PasskeyItem {
  id: string;
  name: string;
  /** True if the credential is synchronised between devices. */
  synced: boolean;
  created_at: string;
  last_used_at: string | null;
}

/** Options of `Passkeys`. */
export interface PasskeysOptions {
  database: AuthDatabase;
  clock: Clock;
  oneTimeTokens: OneTimeTokens;
  publicUrl: string;
  /** Name shown by browsers. */
  rpName: string;
}

/** Passkeys in the database. */
export class Passkeys {
  readonly #options: PasskeysOptions;
  readonly #rpId: string;

  constructor(options: PasskeysOptions) {
    this.#options = options;
    this.#rpId = new URL(options.publicUrl).hostname;
  }

  async list(userId: string): Promise<PasskeyItem[]> {
    return (await this.#findRows(userId)).map(show);
  }

  /**
   * Options for `navigator.credentials.create`. The challenge is valid once and for five minutes; `payload` is
   * returned when it is redeemed.
   */
  async beginRegistration(
    user: { id: string; username: string; name: string | undefined },
    payload: unknown,
    isKnown: boolean,
  ): Promise<{ publicKey: PublicKeyCredentialCreationOptionsJSON }> {
    const { oneTimeTokens, rpName } = this.#options;
    const rows = isKnown ? await this.#findRows(user.id) : [];
    if (rows.length >= PASSKEYS_MAX) {
      throw new PlatformError("conflict", `An account has at most ${PASSKEYS_MAX} passkeys.`);
    }
    const challenge = await oneTimeTokens.issue("passkey-registration", {
      ...(isKnown ? { userId: user.id } : {}),
      payload,
      ttlMs: CHALLENGE_MS,
    });
    const { generateRegistrationOptions } = await loadWebAuthn();
    const publicKey = await generateRegistrationOptions({
      rpName,
      rpID: this.#rpId,
      userID: new TextEncoder().encode(user.id),
      userName: user.username,
      userDisplayName: user.name ?? user.username,
      challenge: new Uint8Array(Buffer.from(challenge, "base64url")),
      timeout: CHALLENGE_MS,
      attestationType: "none",
      excludeCredentials: rows.map(({ id, transports }) => ({
        id,
        transports: JSON.parse(transports) as string[],
      })),
      authenticatorSelection: { residentKey: "required", userVerification: "required" },
      supportedAlgorithmIDs: ALGORITHMS,
    });
    return { publicKey };
  }

  /** Redeems the challenge and verifies the new credential, which `keep` then stores. */
  async finishRegistration(response: RegistrationResponseJSON): Promise<{
    issued: OneTimeToken;
    /** Authentication methods of the new credential, as at a sign-in. */
    amr: readonly string[];
    /** Name of the authenticator or password manager, if it is a common one. */
    authenticator: string | undefined;
    keep: (userId: string, name: string) => Promise<PasskeyItem>;
  }> {
    const { challenge, isFramed } = readClientData(response.response.clientDataJSON);
    if (isFramed) throw new PlatformError("bad_request", "The credential is not valid.");
    const issued = await this.#options.oneTimeTokens.redeem("passkey-registration", challenge);
    if (issued === undefined) throw badChallenge();
    const { verifyRegistrationResponse } = await loadWebAuthn();
    const result = await verifyRegistrationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: this.#options.publicUrl,
      expectedRPID: this.#rpId,
      requireUserVerification: true,
      supportedAlgorithmIDs: ALGORITHMS,
    }).catch((cause: unknown) => {
      throw new PlatformError("bad_request", "The credential is not valid.", { cause });
    });
    if (!result.verified) throw new PlatformError("bad_request", "The credential is not valid.");
    const { credential, credentialDeviceType, credentialBackedUp, aaguid } =
      result.registrationInfo;
    return {
      issued,
      authenticator: nameAuthenticator(aaguid),
      amr: listMethods(credentialDeviceType),
      keep: async (userId, name) => {
        const row: PasskeyRow = {
          id: credential.id,
          user_id: userId,
          public_key: credential.publicKey,
          counter: credential.counter,
          transports: JSON.stringify(
            (credential.transports ?? [])
              .filter((item) => /^[a-z-]{1,20}$/.test(item))
              .slice(0, 10),
          ),
          device_type: credentialDeviceType,
          backed_up: credentialBackedUp ? 1 : 0,
          name,
          created_at: this.#options.clock.now(),
          last_used_at: null,
        };
        try {
          await this.#options.database.db.insertInto("auth_passkeys").values(row).execute();
        } catch (error) {
          if (!isUniqueViolation(error)) throw error;
          throw new PlatformError("conflict", "This passkey is already registered.");
        }
        return show(row);
      },
    };
  }

  /** Options for `navigator.credentials.get`. They are the same for everyone and do not reveal which users exist. */
  async beginLogin(): Promise<{ publicKey: PublicKeyCredentialRequestOptionsJSON }> {
    const challenge = this.#options.oneTimeTokens.sign("passkey-login", CHALLENGE_MS);
    const { generateAuthenticationOptions } = await loadWebAuthn();
    const publicKey = await generateAuthenticationOptions({
      rpID: this.#rpId,
      challenge: new Uint8Array(Buffer.from(challenge, "base64url")),
      timeout: CHALLENGE_MS,
      userVerification: "required",
    });
    return { publicKey };
  }

  /**
   * The user whose passkey signed the challenge, with the authentication methods; throws 401 for an invalid response.
   */
  async finishLogin(
    response: AuthenticationResponseJSON,
  ): Promise<{ userId: string; amr: readonly string[] }> {
    const { database, oneTimeTokens, publicUrl, clock } = this.#options;
    const { challenge, isFramed } = readClientData(response.response.clientDataJSON);
    if (isFramed) throw badPasskey();
    if (!oneTimeTokens.isSigned("passkey-login", challenge)) throw badChallenge();
    const row = await database.db
      .selectFrom("auth_passkeys")
      .selectAll()
      .where("id", "=", response.id)
      .executeTakeFirst();
    if (row === undefined) throw badPasskey();
    // The request names no user, so the credential has to (WebAuthn Level 3, section 7.2, step 6).
    const handle = response.response.userHandle ?? "";
    if (Buffer.from(handle, "base64url").toString() !== row.user_id) throw badPasskey();
    const { verifyAuthenticationResponse } = await loadWebAuthn();
    const result = await verifyAuthenticationResponse({
      response,
      expectedChallenge: challenge,
      expectedOrigin: publicUrl,
      expectedRPID: this.#rpId,
      requireUserVerification: true,
      credential: {
        id: row.id,
        publicKey: new Uint8Array(row.public_key),
        counter: row.counter,
      },
    }).catch((cause: unknown) => {
      throw badPasskey(cause);
    });
    if (!result.verified) throw badPasskey();
    // Redeemed last, so that only the signer can use up the challenge.
    if (!(await oneTimeTokens.redeemSigned("passkey-login", challenge))) throw badChallenge();
    const { newCounter, credentialBackedUp } = result.authenticationInfo;
    // The counter is compared once more: concurrent sign-ins of a copy have read the same one. Synchronised passkeys
    // have none, and always send 0.
    const { numUpdatedRows } = await database.db
      .updateTable("auth_passkeys")
      .set({
        counter: newCounter,
        backed_up: credentialBackedUp ? 1 : 0,
        last_used_at: clock.now(),
      })
      .where("id", "=", row.id)
      .where((where) =>
        newCounter === 0 ? where("counter", "=", 0) : where("counter", "<", newCounter),
      )
      .executeTakeFirst();
    if (numUpdatedRows === 0n) throw badPasskey();
    return { userId: row.user_id, amr: listMethods(row.device_type) };
  }

  /** Renames a passkey; `undefined` if the user has none with this id. */
  async rename(userId: string, id: string, name: string): Promise<PasskeyItem | undefined> {
    requireHonestName(name);
    const row = await this.#options.database.db
      .updateTable("auth_passkeys")
      .set({ name })
      .where("id", "=", id)
      .where("user_id", "=", userId)
      .returningAll()
      .executeTakeFirst();
    return row === undefined ? undefined : show(row);
  }

  /** Removes a passkey; 409 if the user could not sign in any more. */
  async remove(account: Account, id: string): Promise<boolean> {
    return this.#options.database.transaction(async (trx) => {
      // The update is a lock: two concurrent requests must not remove the last two passkeys.
      const user = await trx
        .updateTable("auth_users")
        .set({ updated_at: this.#options.clock.now() })
        .where("id", "=", account.id)
        .returning("password_hash")
        .executeTakeFirst();
      const { numDeletedRows } = await trx
        .deleteFrom("auth_passkeys")
        .where("id", "=", id)
        .where("user_id", "=", account.id)
        .executeTakeFirst();
      const left = await trx
        .selectFrom("auth_passkeys")
        .select("id")
        .where("user_id", "=", account.id)
        .executeTakeFirst();
      if (numDeletedRows > 0n && left === undefined && user?.password_hash === null) {
        throw new PlatformError(
          "conflict",
          "This is the only way to sign in to this account: set a password or add another passkey first.",
        );
      }
      return numDeletedRows > 0n;
    });
  }

  #findRows(userId: string): Promise<PasskeyRow[]> {
    return this.#options.database.db
      .selectFrom("auth_passkeys")
      .selectAll()
      .where("user_id", "=", userId)
      .orderBy("created_at")
      .execute();
  }
}

/** Throws 422 for a name with deceptive characters. */
export function requireHonestName(name: string): void {
  if (!isDeceptive(name)) return;
  const message = "contains deceptive characters";
  throw createValidationError([{ in: "body", path: "name", message }]);
}

function show(row: PasskeyRow): PasskeyItem {
  return {
    id: row.id,
    name: row.name,
    synced: row.device_type === "multiDevice",
    created_at: formatTime(row.created_at),
    last_used_at: row.last_used_at === null ? null : formatTime(row.last_used_at),
  };
}

// `isFramed`: created in a page of another origin that embeds ours, which our headers forbid.
function readClientData(clientDataJson: string): { challenge: string; isFramed: boolean } {
  try {
    const data: unknown = JSON.parse(Buffer.from(clientDataJson, "base64url").toString());
    if (typeof data === "object" && data !== null && "challenge" in data) {
      const isFramed = "crossOrigin" in data && data.crossOrigin === true;
      return { challenge: String(data.challenge), isFramed };
    }
  } catch {
    // Unreadable client data has no challenge of ours.
  }
  return { challenge: "", isFramed: false };
}

function badChallenge(): PlatformError {
  return createUnauthorizedError("The challenge is invalid: it is used, expired or unknown.");
}

function badPasskey(cause?: unknown): PlatformError {
  return createUnauthorizedError("The passkey is not valid.", "Bearer", cause);
}

// RFC 8176: a hardware key or a synchronised key, with user verification.
function listMethods(deviceType: string): readonly string[] {
  return [deviceType === "singleDevice" ? "hwk" : "swk", "user", "mfa"];
}
