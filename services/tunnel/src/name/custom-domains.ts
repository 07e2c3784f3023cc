// Custom domains: proven by a TXT record whose value depends on the subject.
import { createHmac } from "node:crypto";
import { resolveTxt } from "node:dns/promises";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import type { TunnelDatabase, TunnelRow } from "../database/schema.ts";
import { isDomain } from "./hosts.ts";

/** Options of {@link CustomDomains}. */
export interface CustomDomainsOptions {
  database: TunnelDatabase;
  clock: Clock;
  /** Key of the proofs. */
  secret: Buffer;
  /** The relay's domain, which has no custom names below it. */
  domain: string;
  /** Looks up TXT records; default: the system's resolver. */
  lookUp?: (name: string) => Promise<string[][]>;
}

const RECORD_PREFIX = "_platform-tunnel";
const LOOKUP_MS_MAX = 5_000;
/** A proof is valid for this time if the lookup fails, so that an outage of DNS does not take names away. */
const PROOF_KEPT_MS = 7 * 86_400_000;

/** The custom domains of all tunnels. */
export class CustomDomains {
  readonly #options: CustomDomainsOptions;
  readonly #byDomain = new Map<string, { tunnelId: string; verifiedAt: number }>();

  constructor(options: CustomDomainsOptions) {
    this.#options = options;
  }

  /** Reads all domains into memory. */
  async load(): Promise<void> {
    const rows = await this.#options.database.db.selectFrom("tunnel_domains").selectAll().execute();
    for (const row of rows) {
      this.#byDomain.set(row.domain, { tunnelId: row.tunnel_id, verifiedAt: row.verified_at });
    }
  }

  /** Id of the tunnel that has the domain. */
  find(domain: string): string | undefined {
    return this.#byDomain.get(domain)?.tunnelId;
  }

  /** Domains of a tunnel. */
  list(tunnelId: string): string[] {
    return [...this.#byDomain]
      .filter(([, known]) => known.tunnelId === tunnelId)
      .map(([name]) => name);
  }

  /** The TXT record that proves a domain for a subject. */
  describeProof(domain: string, subject: string): { name: string; value: string } {
    const value = createHmac("sha256", this.#options.secret)
      .update(`domain\0${subject}\0${domain}`)
      .digest("hex")
      .slice(0, 40);
    return { name: `${RECORD_PREFIX}.${domain}`, value };
  }

  /** Gives a domain to a tunnel if its TXT record proves it now; throws 400 or 403 with the record to create. */
  async claim(wanted: string, row: TunnelRow): Promise<string> {
    const domain = wanted.toLowerCase().replace(/\.$/, "");
    const { domain: own, database, clock } = this.#options;
    if (!isDomain(domain) || domain === own || domain.endsWith(`.${own}`)) {
      throw new PlatformError("validation_failed", `${domain} cannot be a custom domain.`);
    }
    const proof = this.describeProof(domain, row.subject);
    const known = this.#byDomain.get(domain);
    const isProven = await this.#isProven(proof);
    const isKept =
      isProven === undefined &&
      known?.tunnelId === row.id &&
      clock.now() - known.verifiedAt < PROOF_KEPT_MS;
    if (isProven !== true && !isKept) {
      throw new PlatformError(
        "forbidden",
        `The domain ${domain} is not proven: create the TXT record ${proof.name} with the value ${proof.value}.`,
        { fields: { record: proof } },
      );
    }
    const verifiedAt = isProven === true ? clock.now() : known!.verifiedAt;
    await database.db
      .insertInto("tunnel_domains")
      .values({ domain, tunnel_id: row.id, verified_at: verifiedAt })
      .onConflict((conflict) =>
        conflict.column("domain").doUpdateSet({ tunnel_id: row.id, verified_at: verifiedAt }),
      )
      .execute();
    this.#byDomain.set(domain, { tunnelId: row.id, verifiedAt });
    return domain;
  }

  /** The tunnel was deleted, and its domains with it. */
  forget(tunnelId: string): void {
    for (const domain of this.list(tunnelId)) this.#byDomain.delete(domain);
  }

  /** Undefined if the lookup failed, as opposed to a missing record. */
  async #isProven(proof: { name: string; value: string }): Promise<boolean | undefined> {
    const lookUp = this.#options.lookUp ?? resolveTxt;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), LOOKUP_MS_MAX);
    });
    try {
      const records = await Promise.race([lookUp(proof.name), late]);
      return records?.some((parts) => parts.join("").trim() === proof.value);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      return code === "ENOTFOUND" || code === "ENODATA" ? false : undefined;
    } finally {
      clearTimeout(timer);
    }
  }
}
