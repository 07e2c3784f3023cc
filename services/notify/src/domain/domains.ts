// Sending domains and their DKIM keys: creation, publication, rotation.
import { createPrivateKey, generateKeyPair } from "node:crypto";
import { promisify } from "node:util";
import { PlatformError } from "@platform/kernel/errors";
import type { SecretBox } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import type { DkimKeyRow } from "../database/domain.ts";
import type { NotifyDatabase } from "../database/schema.ts";
import { toPlace } from "../database/secrets.ts";
import { limitLookups } from "../dns/budget.ts";
import type { DnsLookup } from "../dns/resolver.ts";
import { signMessage, type SigningKey } from "./dkim-signature.ts";
import { checkRecord, listRecords, type CheckedRecord } from "./dns-records.ts";

/** Options of {@link Domains}. */
export interface DomainsOptions {
  database: NotifyDatabase;
  box: SecretBox;
  clock: Clock;
  lookup: DnsLookup;
  /** Domains of the configuration. */
  configured: ReadonlySet<string>;
  /** See `RecordOptions`. */
  mailHost: string | undefined;
}

/** A domain with its keys and records. */
export interface DomainDetail {
  domain: string;
  isConfigured: boolean;
  keys: DkimKeyRow[];
  records: CheckedRecord[];
}

const KEY_BITS = 2_048;
const DOMAINS_MAX = 1_000;
const CHECK_MS = 3_000;
/** Retired keys stay published for this time, for mail in transit. */
const RETIRED_MS = 7 * 86_400_000;
const CHECK_EVERY_MS = 10 * 60_000;
const generateKeys = promisify(generateKeyPair);

/** The sending domains. */
export class Domains {
  readonly #options: DomainsOptions;
  #names: ReadonlySet<string>;
  #signing: ReadonlyMap<string, SigningKey> = new Map();
  #checkedAt = 0;

  constructor(options: DomainsOptions) {
    this.#options = options;
    this.#names = options.configured;
  }

  /** All sending domains, those of the configuration first. */
  get names(): ReadonlySet<string> {
    return this.#names;
  }

  /** True if mail of a domain is signed. */
  isSigned(domain: string): boolean {
    return this.#signing.has(domain);
  }

  /** Returns the DKIM-Signature field of a message with CRLF; "" if the domain has no active key. */
  async sign(content: Buffer, domain: string): Promise<string> {
    const key = this.#signing.get(domain);
    return key === undefined ? "" : signMessage(content, key, this.#options.clock.now());
  }

  /** Reads domains and keys, which other nodes may have changed. */
  async load(): Promise<void> {
    const { database, box, configured } = this.#options;
    const rows = await database.db
      .selectFrom("notify_domains")
      .select("domain")
      .orderBy("domain")
      .execute();
    const active = await database.db
      .selectFrom("notify_dkim_keys")
      .selectAll()
      .where("state", "=", "active")
      .execute();
    this.#names = new Set([...configured, ...rows.map(({ domain }) => domain)]);
    this.#signing = new Map(
      active.map(({ domain, selector, private_key: sealed }) => {
        const key = createPrivateKey(box.open(sealed, placeOf(domain, selector)));
        return [domain, { domain, selector, key }];
      }),
    );
  }

  /** Adds a domain with its first key; throws `conflict`. */
  async add(domain: string): Promise<DomainDetail> {
    const { database, clock } = this.#options;
    if (this.#names.size >= DOMAINS_MAX) {
      throw new PlatformError("conflict", `At most ${DOMAINS_MAX} domains are allowed.`);
    }
    const inserted = await database.db
      .insertInto("notify_domains")
      .values({ domain, created_at: clock.now() })
      .onConflict((conflict) => conflict.column("domain").doNothing())
      .executeTakeFirst();
    if (inserted.numInsertedOrUpdatedRows === 0n) {
      throw new PlatformError("conflict", `The domain ${domain} exists already.`);
    }
    await this.#createKey(domain);
    await this.load();
    return this.check(domain);
  }

  /** Deletes a domain and its keys; throws `not_found`, and `conflict` for domains of the configuration. */
  async remove(domain: string): Promise<void> {
    const { database, configured } = this.#options;
    this.#require(domain);
    if (configured.has(domain)) {
      throw new PlatformError("conflict", "The domain is part of the configuration.");
    }
    await database.transaction(async (trx) => {
      await trx.deleteFrom("notify_domains").where("domain", "=", domain).execute();
      await trx.deleteFrom("notify_dkim_keys").where("domain", "=", domain).execute();
    });
    await this.load();
  }

  /**
   * Returns a domain with the result of its DNS checks; throws `not_found`. A pending key whose record is right becomes
   * active. The first call for a domain of the configuration creates its key.
   */
  async check(domain: string): Promise<DomainDetail> {
    this.#require(domain);
    if ((await this.#listKeys(domain)).length === 0) await this.#createKey(domain);
    const keys = await this.#listKeys(domain);
    const { lookup, configured, mailHost } = this.#options;
    const limited = limitLookups(lookup, CHECK_MS);
    const records = await Promise.all(
      listRecords(domain, keys, { mailHost }).map((record) => checkRecord(record, limited)),
    );
    const pending = keys.find(({ state }) => state === "pending");
    const isPublished = records.some(
      ({ selector, status }) => selector === pending?.selector && status === "ok",
    );
    if (pending !== undefined && isPublished) await this.#activate(pending);
    return {
      domain,
      isConfigured: configured.has(domain),
      keys: await this.#listKeys(domain),
      records,
    };
  }

  /** Creates the next key, which signs once its record is published; throws `not_found` and `conflict`. */
  async rotate(domain: string): Promise<DomainDetail> {
    this.#require(domain);
    const keys = await this.#listKeys(domain);
    const pending = keys.find(({ state }) => state === "pending");
    if (pending !== undefined) {
      throw new PlatformError(
        "conflict",
        `The key ${pending.selector} of ${domain} has not been published yet.`,
      );
    }
    await this.#createKey(domain);
    return this.check(domain);
  }

  /** Makes a pending key sign although its record was not seen; throws `not_found`. */
  async activate(domain: string, selector: string): Promise<void> {
    const keys = await this.#listKeys(domain);
    const key = keys.find((one) => one.selector === selector && one.state === "pending");
    if (key === undefined) throw new PlatformError("not_found", "There is no such pending key.");
    await this.#activate(key);
  }

  /** Checks pending keys every 10 minutes, deletes retired ones, and reads changes of other nodes. */
  async sweep(): Promise<void> {
    const { database, clock } = this.#options;
    const nowMs = clock.now();
    await database.db
      .deleteFrom("notify_dkim_keys")
      .where("state", "=", "retired")
      .where("changed_at", "<=", nowMs - RETIRED_MS)
      .execute();
    await this.load();
    if (nowMs - this.#checkedAt < CHECK_EVERY_MS) return;
    this.#checkedAt = nowMs;
    const pending = await database.db
      .selectFrom("notify_dkim_keys")
      .select("domain")
      .where("state", "=", "pending")
      .execute();
    for (const { domain } of pending) {
      if (this.#names.has(domain)) await this.check(domain);
    }
  }

  async #createKey(domain: string): Promise<void> {
    const { database, box, clock } = this.#options;
    const nowMs = clock.now();
    const selector = `p${Math.floor(nowMs / 1_000).toString(36)}`;
    const { publicKey, privateKey } = await generateKeys("rsa", { modulusLength: KEY_BITS });
    const pem = privateKey.export({ type: "pkcs8", format: "pem" });
    await database.db
      .insertInto("notify_dkim_keys")
      .values({
        domain,
        selector,
        private_key: box.seal(pem, placeOf(domain, selector)),
        public_key: publicKey.export({ type: "spki", format: "der" }).toString("base64"),
        state: "pending",
        created_at: nowMs,
        changed_at: nowMs,
      })
      .onConflict((conflict) => conflict.columns(["domain", "selector"]).doNothing())
      .execute();
  }

  async #activate({ domain, selector }: DkimKeyRow): Promise<void> {
    const { database, clock } = this.#options;
    const changed = clock.now();
    await database.transaction(async (trx) => {
      await trx
        .updateTable("notify_dkim_keys")
        .set({ state: "retired", changed_at: changed })
        .where("domain", "=", domain)
        .where("state", "=", "active")
        .execute();
      await trx
        .updateTable("notify_dkim_keys")
        .set({ state: "active", changed_at: changed })
        .where("domain", "=", domain)
        .where("selector", "=", selector)
        .execute();
    });
    await this.load();
  }

  async #listKeys(domain: string): Promise<DkimKeyRow[]> {
    return this.#options.database.db
      .selectFrom("notify_dkim_keys")
      .selectAll()
      .where("domain", "=", domain)
      .orderBy("created_at")
      .orderBy("selector")
      .execute();
  }

  #require(domain: string): void {
    if (this.#names.has(domain)) return;
    throw new PlatformError("not_found", `The domain ${domain} is not a sending domain.`);
  }
}

function placeOf(domain: string, selector: string): string {
  return toPlace("notify_dkim_keys.private_key", `${domain}/${selector}`);
}
