// Second factors: set up, confirmed by a first code, verified, removed.
import { PlatformError } from "@platform/kernel/errors";
import type { IdSource } from "@platform/kernel/ids";
import type { Clock } from "@platform/kernel/time";
import { generateURI } from "otplib";
import { toDataURL } from "qrcode";
import type { FactorKind, FactorRow } from "../database/factor.ts";
import type { AuthDatabase } from "../database/schema.ts";
import type { Throttle } from "../guard/throttle.ts";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Notifier } from "../notify/notifier.ts";
import { formatTime } from "../session/sessions.ts";
import type { Account } from "../user/account.ts";
import {
  createBackupCode,
  createSentCode,
  createTotpSecret,
  findTotpStep,
  normalizeCode,
  hashCode,
  readBackupCode,
} from "./one-time-code.ts";

const FACTORS_MAX = 10;
const BACKUP_CODES = 10;
const SENT_CODE_MS = 600_000;
const FREE_ATTEMPTS = 10;
const FREE_MESSAGES = 5;

/** A factor as its owner sees it. */
export interface FactorItem {
  id: string;
  type: FactorKind;
  name: string;
  /** The masked address that codes are sent to. */
  sent_to?: string;
  created_at: string;
  last_used_at: string | null;
}

/** The response to setting up a factor. */
export type FactorSetup =
  | { id: string; secret: string; otpauth_uri: string; qr: string; backup_codes: string[] }
  | { id: string; sent_to: string };

/** A verified code: RFC 8176 methods, and the kind for metrics. */
export interface CodeProof {
  amr: readonly string[];
  kind: FactorKind | "backup";
}

/** Options of `Factors`. */
export interface FactorsOptions {
  database: AuthDatabase;
  clock: Clock;
  ids: IdSource;
  box: SecretBox;
  notifier: Notifier;
  throttle: Throttle;
  /** Keys the hashes of codes. */
  codeKey: Buffer;
  /** Issuer shown by authenticator apps. */
  totpIssuer: string;
  /** Counts a verification by factor and result. */
  countMfa: (factor: string, result: string) => void;
}

/** Factors in the database. */
export class Factors {
  readonly #options: FactorsOptions;

  constructor(options: FactorsOptions) {
    this.#options = options;
  }

  /** Confirmed factors, oldest first. */
  async list(userId: string): Promise<FactorItem[]> {
    const rows = await this.#findRows(userId);
    return rows.filter(({ confirmed }) => confirmed === 1).map((row) => this.#show(row));
  }

  /** Starts to set up an authenticator app, which becomes a factor once its first code is verified. */
  async setUpTotp(account: Account, name: string): Promise<FactorSetup> {
    const secret = createTotpSecret();
    const id = await this.#insert(account, "totp", name, secret);
    const uri = generateURI({ issuer: this.#options.totpIssuer, label: account.username, secret });
    return {
      id,
      secret,
      otpauth_uri: uri,
      qr: await toDataURL(uri, { errorCorrectionLevel: "M", margin: 2, scale: 4 }),
      backup_codes: await this.#createBackupCodes(account.id, id, 0),
    };
  }

  /**
   * Starts to set up codes by email or SMS and sends the first one. Throws `channel_unavailable` without a mail
   * service.
   */
  async setUpSent(
    account: Account,
    kind: "email" | "sms",
    to: string,
    name: string,
  ): Promise<FactorSetup> {
    this.#options.notifier.requireChannel();
    const id = await this.#insert(account, kind, name, to);
    return { id, sent_to: await this.send(account.id, id, undefined) };
  }

  /**
   * Sends a code and returns the masked address. The code is valid for the sign-in of this `mfaToken` only; without a
   * token it confirms a factor that is being set up.
   */
  async send(userId: string, factorId: string, mfaToken: string | undefined): Promise<string> {
    const { notifier, throttle, database, clock, codeKey } = this.#options;
    const row = (await this.#findRows(userId)).find(({ id }) => id === factorId);
    if (
      row === undefined ||
      row.kind === "totp" ||
      (row.confirmed === 1) !== (mfaToken !== undefined)
    ) {
      throw new PlatformError("not_found", "There is no such factor.");
    }
    notifier.requireChannel();
    await throttle.begin({ key: `mfa:send:${userId}`, free: FREE_MESSAGES }, []);
    const code = createSentCode();
    const expiresAt = clock.now() + SENT_CODE_MS;
    await database.db
      .updateTable("auth_factors")
      .set({
        code_hash: hashCode(codeKey, placeOfCode(factorId, mfaToken), code),
        code_expires_at: expiresAt,
      })
      .where("id", "=", factorId)
      .execute();
    const to = this.#open(row);
    const text = `${code} is your code. It is valid for 10 minutes. We will never ask you for it.`;
    if (row.kind === "sms") await notifier.sendSms({ to, text, expiresAt });
    else await notifier.sendEmail({ to, subject: "Your code", text, expiresAt });
    return hideMost(to);
  }

  /** Verifies the first code of a factor, which is active from then on. */
  async confirm(userId: string, factorId: string, typed: string): Promise<CodeProof> {
    const code = normalizeCode(typed);
    const row = (await this.#findRows(userId)).find(({ id }) => id === factorId);
    if (row === undefined || row.confirmed === 1) {
      throw new PlatformError("not_found", "There is no unconfirmed factor with this id.");
    }
    const attempt = await this.#begin(userId);
    if (!(await this.#spend(row, code, undefined))) throw this.#refuse(row.kind);
    await attempt.succeed();
    await this.#options.database.transaction(async (trx) => {
      await trx
        .updateTable("auth_factors")
        .set({ confirmed: 1 })
        .where("id", "=", factorId)
        .execute();
      const fresh = await trx
        .updateTable("auth_backup_codes")
        .set({ active: 1 })
        .where("factor_id", "=", factorId)
        .executeTakeFirst();
      if (fresh.numUpdatedRows === 0n) return;
      await trx
        .deleteFrom("auth_backup_codes")
        .where("user_id", "=", userId)
        .where("factor_id", "!=", factorId)
        .execute();
    });
    this.#options.countMfa(row.kind, "success");
    return { amr: methodsOf(row.kind), kind: row.kind };
  }

  /**
   * Verifies a code: TOTP, a code sent for this `mfaToken`, or a backup code. Throws 401 for a wrong code, 429 after
   * too many.
   */
  async verify(userId: string, typed: string, mfaToken: string): Promise<CodeProof> {
    const attempt = await this.#begin(userId);
    const code = normalizeCode(typed);
    const backup = readBackupCode(code);
    if (backup !== undefined) {
      if (!(await this.#spendBackupCode(userId, backup))) throw this.#refuse("backup");
      await attempt.succeed();
      this.#options.countMfa("backup", "success");
      return { amr: ["otp"], kind: "backup" };
    }
    for (const row of await this.#findRows(userId)) {
      if (row.confirmed === 0 || !(await this.#spend(row, code, mfaToken))) continue;
      await attempt.succeed();
      this.#options.countMfa(row.kind, "success");
      return { amr: methodsOf(row.kind), kind: row.kind };
    }
    throw this.#refuse("unknown");
  }

  /** Issues new backup codes; the previous ones become invalid. */
  async renewBackupCodes(userId: string): Promise<string[]> {
    if ((await this.list(userId)).length === 0) {
      throw new PlatformError("conflict", "Backup codes require a second factor.");
    }
    await this.#options.database.db
      .deleteFrom("auth_backup_codes")
      .where("user_id", "=", userId)
      .execute();
    return this.#createBackupCodes(userId, "", 1);
  }

  /** Removes a factor, and with the last factor the backup codes; false if there was none. */
  remove(userId: string, factorId: string): Promise<boolean> {
    return this.#options.database.transaction(async (trx) => {
      const { numDeletedRows } = await trx
        .deleteFrom("auth_factors")
        .where("user_id", "=", userId)
        .where("id", "=", factorId)
        .executeTakeFirst();
      const left = await trx
        .selectFrom("auth_factors")
        .select("id")
        .where("user_id", "=", userId)
        .where("confirmed", "=", 1)
        .executeTakeFirst();
      if (left === undefined) {
        await trx.deleteFrom("auth_backup_codes").where("user_id", "=", userId).execute();
      }
      return numDeletedRows > 0n;
    });
  }

  /** Removes all factors and backup codes of a user who has lost them; returns the number of factors. */
  removeAll(userId: string): Promise<number> {
    return this.#options.database.transaction(async (trx) => {
      await trx.deleteFrom("auth_backup_codes").where("user_id", "=", userId).execute();
      const gone = await trx
        .deleteFrom("auth_factors")
        .where("user_id", "=", userId)
        .executeTakeFirst();
      return Number(gone.numDeletedRows);
    });
  }

  #findRows(userId: string): Promise<FactorRow[]> {
    return this.#options.database.db
      .selectFrom("auth_factors")
      .selectAll()
      .where("user_id", "=", userId)
      .orderBy("created_at")
      .execute();
  }

  async #insert(account: Account, kind: FactorKind, name: string, secret: string): Promise<string> {
    const { database, clock, ids, box } = this.#options;
    const id = ids.uuid();
    const rows = await this.#findRows(account.id);
    if (rows.filter(({ confirmed }) => confirmed === 1).length >= FACTORS_MAX) {
      throw new PlatformError("conflict", `An account has at most ${FACTORS_MAX} factors.`);
    }
    // A new setup replaces an unfinished one.
    await database.db
      .deleteFrom("auth_factors")
      .where("user_id", "=", account.id)
      .where("confirmed", "=", 0)
      .execute();
    await database.db
      .insertInto("auth_factors")
      .values({
        id,
        user_id: account.id,
        kind,
        name,
        secret: box.seal(secret, placeOf(id)),
        confirmed: 0,
        last_step: 0,
        code_hash: null,
        code_expires_at: 0,
        created_at: clock.now(),
        last_used_at: null,
      })
      .execute();
    return id;
  }

  // One conditional update: of several concurrent requests with the same code one succeeds.
  async #spend(row: FactorRow, code: string, mfaToken: string | undefined): Promise<boolean> {
    const { database, clock, codeKey } = this.#options;
    if (!/^\d{6}$/.test(code)) return false;
    const now = clock.now();
    const update = database.db.updateTable("auth_factors").where("id", "=", row.id);
    if (row.kind === "totp") {
      const step = findTotpStep(this.#open(row), code, now);
      if (step === undefined) return false;
      const { numUpdatedRows } = await update
        .set({ last_step: step, last_used_at: now })
        .where("last_step", "<", step)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    }
    const { numUpdatedRows } = await update
      .set({ code_hash: null, last_used_at: now })
      .where("code_hash", "=", hashCode(codeKey, placeOfCode(row.id, mfaToken), code))
      .where("code_expires_at", ">", now)
      .executeTakeFirst();
    return numUpdatedRows > 0n;
  }

  async #spendBackupCode(userId: string, code: string): Promise<boolean> {
    const { database, codeKey } = this.#options;
    const { numDeletedRows } = await database.db
      .deleteFrom("auth_backup_codes")
      .where("hash", "=", hashCode(codeKey, userId, code))
      .where("active", "=", 1)
      .executeTakeFirst();
    return numDeletedRows > 0n;
  }

  async #createBackupCodes(userId: string, factorId: string, active: number): Promise<string[]> {
    const { database, codeKey } = this.#options;
    await database.db
      .deleteFrom("auth_backup_codes")
      .where("user_id", "=", userId)
      .where("active", "=", 0)
      .execute();
    const codes = Array.from({ length: BACKUP_CODES }, createBackupCode);
    await database.db
      .insertInto("auth_backup_codes")
      .values(
        codes.map((code) => ({
          hash: hashCode(codeKey, userId, normalizeCode(code)),
          user_id: userId,
          factor_id: factorId,
          active,
        })),
      )
      .execute();
    return codes;
  }

  #begin(userId: string) {
    return this.#options.throttle.begin({ key: `mfa:code:${userId}`, free: FREE_ATTEMPTS }, []);
  }

  #refuse(kind: string): PlatformError {
    this.#options.countMfa(kind, "failure");
    return new PlatformError("unauthorized", "The code is wrong, used or expired.", {
      headers: { "WWW-Authenticate": "Bearer" },
    });
  }

  #open(row: FactorRow): string {
    return this.#options.box.open(row.secret, placeOf(row.id));
  }

  #show(row: FactorRow): FactorItem {
    return {
      id: row.id,
      type: row.kind,
      name: row.name,
      ...(row.kind === "totp" ? {} : { sent_to: hideMost(this.#open(row)) }),
      created_at: formatTime(row.created_at),
      last_used_at: row.last_used_at === null ? null : formatTime(row.last_used_at),
    };
  }
}

function placeOf(id: string): string {
  return `auth_factors.${id}.secret`;
}

function placeOfCode(factorId: string, mfaToken: string | undefined): string {
  return `${factorId}\0${mfaToken ?? ""}`;
}

function methodsOf(kind: FactorKind): readonly string[] {
  return kind === "sms" ? ["sms"] : ["otp"];
}

// Enough to recognise one's own address, not enough to learn another person's.
function hideMost(to: string): string {
  const at = to.indexOf("@");
  return at === -1 ? `…${to.slice(-3)}` : `${to.slice(0, 1)}…${to.slice(at)}`;
}
