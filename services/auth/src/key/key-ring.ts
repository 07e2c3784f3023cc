// The signing keys of all nodes: active key, published keys and rotation.
import { readFileSync } from "node:fs";
import { isUniqueViolation, type Database } from "@platform/kernel/db";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { every, type Clock, type RepeatingTimer } from "@platform/kernel/time";
import type { KeyTables, SigningAlgorithm, SigningKeyRow } from "../database/key.ts";
import type { SecretBox } from "@platform/kernel/secrets";
import {
  generateSigningKey,
  readSigningKey,
  type PublicJwk,
  type SigningKey,
} from "./signing-key.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const KEYS_MAX = 32;

/** Options of the key ring. */
export interface KeyRingOptions {
  database: Database<KeyTables>;
  box: SecretBox;
  clock: Clock;
  log: Logger;
  algorithm: SigningAlgorithm;
  /** PEM file of a private key that becomes the first key. Later changes of the file have no effect. */
  seedPath?: string | undefined;
  /** Lifetime of the longest-lived token that these keys sign, in ms. Default 1 h. */
  tokenLifeMs?: number;
  /** Age at which a key is replaced, in ms. Default 30 d. */
  rotateAfterMs?: number;
  /** Time for which a key is published before it signs and after its last token has expired, in ms. Default 24 h. */
  overlapMs?: number;
  /** Interval of polling the database, in ms. Default 1 000. */
  pollMs?: number;
}

/** A key as the API shows it. */
export interface KeyReport {
  kid: string;
  algorithm: SigningAlgorithm;
  state: "pending" | "active" | "retired" | "revoked";
  created_at: string;
  activates_at: string;
  expires_at: string | undefined;
}

/** Kinds of rotation. */
export type Rotation =
  /** A successor is published now and signs after the overlap. */
  | { mode: "scheduled" }
  /** A successor signs immediately. `revokeKid` is revoked on all nodes together with all tokens that it signed. */
  | { mode: "immediate"; revokeKid?: string | undefined };

/** The keys at one moment; every change creates another set. */
export interface KeySet {
  /** Signs new tokens. */
  readonly active: SigningKey;
  /** Keys that verify tokens, the active one first. */
  readonly published: readonly SigningKey[];
  /** The public key set. */
  readonly jwks: { readonly keys: readonly PublicJwk[] };
}

interface Held {
  row: SigningKeyRow;
  key: SigningKey;
}

/** The signing keys. Call `start` before use and `stop` at the end. */
export class KeyRing {
  readonly #options: Required<Omit<KeyRingOptions, "seedPath">> & Pick<KeyRingOptions, "seedPath">;
  readonly #listeners = new Set<(keys: KeySet) => void>();
  readonly #opened = new Map<string, SigningKey>();
  #held: readonly Held[] = [];
  /** Generation of the newest row when `#held` was read. */
  #newest = 0;
  #current: KeySet | undefined;
  #signature = "";
  #timer: RepeatingTimer | undefined;
  #loading: Promise<void> | undefined;

  constructor(options: KeyRingOptions) {
    this.#options = {
      tokenLifeMs: HOUR_MS,
      rotateAfterMs: 30 * DAY_MS,
      overlapMs: DAY_MS,
      pollMs: 1_000,
      ...options,
    };
  }

  /** The current keys. Throws before `start`. */
  get current(): KeySet {
    if (this.#current === undefined) throw new Error("the key ring has not been started");
    return this.#current;
  }

  /** Age of the active key in seconds. */
  get ageSeconds(): number {
    const { kid } = this.current.active;
    const since = this.#held.find(({ key }) => key.kid === kid)?.row.activates_at ?? 0;
    return Math.max(0, this.#options.clock.now() - since) / 1_000;
  }

  /** Loads the keys, creates the first one if there is none, and starts to poll the database. */
  async start(): Promise<void> {
    await this.refresh();
    this.#timer = every(
      this.#options.pollMs,
      () => this.refresh(),
      (error) => this.#options.log.error("reading the signing keys failed", { error }),
    );
  }

  /** Stops polling; waits for the poll in flight. */
  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  /** Registers a listener of new key sets; the returned function removes it. */
  onChange(listener: (keys: KeySet) => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  /** The published key with this id; reads the database if this node does not know the id. */
  async find(kid: string): Promise<SigningKey | undefined> {
    const known = this.peek(kid);
    if (known !== undefined) return known;
    await this.refresh();
    return this.peek(kid);
  }

  /** The published key with this id, if this node knows it. */
  peek(kid: string): SigningKey | undefined {
    return this.current.published.find((key) => key.kid === kid);
  }

  /** Reads the database now; concurrent callers share one read. */
  refresh(): Promise<void> {
    this.#loading ??= this.#load().finally(() => {
      this.#loading = undefined;
    });
    return this.#loading;
  }

  /** All stored keys, newest first. */
  async list(): Promise<KeyReport[]> {
    await this.refresh();
    const rows = await this.#readRows();
    const active = this.current.active.kid;
    const now = this.#options.clock.now();
    return rows.toReversed().map((row) => ({
      kid: row.kid,
      algorithm: row.algorithm,
      state: readState(row, active, now),
      created_at: formatTime(row.created_at),
      activates_at: formatTime(row.activates_at),
      expires_at: row.expires_at === null ? undefined : formatTime(row.expires_at),
    }));
  }

  /**
   * Rotates the keys and returns the new key's id. 409 while a scheduled successor waits, 404 for an unknown
   * `revokeKid`.
   */
  async rotate(rotation: Rotation): Promise<{ kid: string }> {
    await this.refresh();
    const now = this.#options.clock.now();
    if (rotation.mode === "scheduled") {
      if (this.#held.some(({ row }) => row.activates_at > now)) {
        throw new PlatformError("conflict", "A successor is already published and waits to sign.");
      }
      return { kid: await this.#add(this.#newest, now, now + this.#options.overlapMs) };
    }
    const { revokeKid } = rotation;
    if (revokeKid !== undefined && !this.#held.some(({ key }) => key.kid === revokeKid)) {
      throw new PlatformError("not_found", "There is no published key with this id.");
    }
    const kid = await this.#add(this.#newest, now, now, revokeKid);
    await this.refresh();
    return { kid };
  }

  async #load(): Promise<void> {
    const { clock, algorithm } = this.#options;
    let rows = await this.#readRows();
    const isUsable = (row: SigningKeyRow): boolean =>
      row.revoked_at === null && row.activates_at <= clock.now() && row.algorithm === algorithm;
    if (!rows.some(isUsable)) {
      await this.#add(newestOf(rows), clock.now(), clock.now());
      rows = await this.#readRows();
    }
    const now = clock.now();
    this.#newest = newestOf(rows);
    this.#held = rows
      .filter((row) => row.revoked_at === null && (row.expires_at === null || row.expires_at > now))
      .map((row) => ({ row, key: this.#open(row) }));
    await this.#sealAgain();
    this.#announce(now);
    await this.#rotateByAge(now);
  }

  #announce(now: number): void {
    const { algorithm } = this.#options;
    const active = this.#held.findLast(
      ({ row }) => row.activates_at <= now && row.algorithm === algorithm,
    );
    if (active === undefined) throw new Error("no signing key is active");
    const published = [
      active.key,
      ...this.#held.filter((held) => held !== active).map(({ key }) => key),
    ];
    const signature = published.map(({ kid }) => kid).join();
    if (signature === this.#signature) return;
    this.#signature = signature;
    this.#current = {
      active: active.key,
      published,
      jwks: { keys: published.map(({ publicJwk }) => publicJwk) },
    };
    for (const listener of this.#listeners) listener(this.#current);
  }

  // Replaced early enough that the successor has been published for the overlap when the key reaches its maximum age.
  async #rotateByAge(now: number): Promise<void> {
    const { rotateAfterMs, overlapMs } = this.#options;
    const newest = this.#held.at(-1)!.row;
    if (newest.activates_at > now) return;
    if (now - newest.activates_at < rotateAfterMs - overlapMs) return;
    const activatesAt = Math.max(now + overlapMs, newest.activates_at + rotateAfterMs);
    await this.#add(this.#newest, now, activatesAt);
  }

  async #readRows(): Promise<SigningKeyRow[]> {
    return this.#options.database.db
      .selectFrom("auth_signing_keys")
      .selectAll()
      .orderBy("generation")
      .execute();
  }

  #open(row: SigningKeyRow): SigningKey {
    const known = this.#opened.get(row.kid);
    if (known !== undefined) return known;
    const key = readSigningKey(
      this.#options.box.open(row.private_key, placeOf(row.kid)),
      row.algorithm,
    );
    if (key.kid !== row.kid) throw new Error(`signing key ${row.kid}: the row holds another key`);
    if (this.#opened.size >= KEYS_MAX) this.#opened.clear();
    this.#opened.set(row.kid, key);
    return key;
  }

  // All rows move to a new first encryption key, so that the old one can be removed.
  async #sealAgain(): Promise<void> {
    const { box, database } = this.#options;
    for (const { row, key } of this.#held) {
      if (!box.isStale(row.private_key)) continue;
      await database.db
        .updateTable("auth_signing_keys")
        .set({ private_key: box.seal(key.pem, placeOf(row.kid)) })
        .where("kid", "=", row.kid)
        .where("private_key", "=", row.private_key)
        .execute();
    }
  }

  /**
   * Creates the key that follows generation `after`, the newest one on which the decision was based: of the nodes that
   * decide at the same time, one succeeds.
   */
  async #add(after: number, now: number, activatesAt: number, revokeKid?: string): Promise<string> {
    const { database, box, algorithm, tokenLifeMs, overlapMs, seedPath, log } = this.#options;
    const generation = after + 1;
    const isFirst = after === 0 && seedPath !== undefined;
    const key = isFirst
      ? readSigningKey(readFileSync(seedPath, "utf8"), algorithm)
      : await generateSigningKey(algorithm);
    const row: SigningKeyRow = {
      kid: key.kid,
      generation,
      algorithm,
      private_key: box.seal(key.pem, placeOf(key.kid)),
      created_at: now,
      activates_at: activatesAt,
      expires_at: null,
      revoked_at: null,
    };
    try {
      await database.transaction(async (trx) => {
        await trx.insertInto("auth_signing_keys").values(row).execute();
        await trx
          .updateTable("auth_signing_keys")
          .set({ expires_at: activatesAt + tokenLifeMs + overlapMs })
          .where("generation", "<", generation)
          .where("expires_at", "is", null)
          .execute();
        // A waiting successor would otherwise take over from the key just created.
        if (activatesAt <= now) {
          await trx
            .updateTable("auth_signing_keys")
            .set({ activates_at: now })
            .where("generation", "<", generation)
            .where("activates_at", ">", now)
            .execute();
        }
        if (revokeKid !== undefined) {
          await trx
            .updateTable("auth_signing_keys")
            .set({ revoked_at: now })
            .where("kid", "=", revokeKid)
            .execute();
        }
        await trx
          .deleteFrom("auth_signing_keys")
          .where("expires_at", "<", now - 30 * DAY_MS)
          .execute();
      });
    } catch (error) {
      // Another node was first: its key is sufficient unless one was to be revoked.
      if (!isUniqueViolation(error)) throw error;
      const rows = await this.#readRows();
      if (revokeKid !== undefined) return this.#add(newestOf(rows), now, activatesAt, revokeKid);
      return rows.at(-1)!.kid;
    }
    log.info("signing key created", {
      kid: key.kid,
      algorithm,
      activates_at: formatTime(activatesAt),
    });
    return key.kid;
  }
}

/** Generation of the newest key, 0 without one. */
function newestOf(rows: readonly SigningKeyRow[]): number {
  return rows.at(-1)?.generation ?? 0;
}

function placeOf(kid: string): string {
  return `auth_signing_keys.private_key.${kid}`;
}

function readState(row: SigningKeyRow, active: string, now: number): KeyReport["state"] {
  if (row.revoked_at !== null) return "revoked";
  if (row.kid === active) return "active";
  return row.activates_at > now ? "pending" : "retired";
}

function formatTime(ms: number): string {
  return new Date(ms).toISOString();
}
