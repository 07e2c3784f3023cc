// MTA-STS policies (RFC 8461): domains that require TLS with a verified certificate.
import type { EgressFetch } from "@platform/kernel/egress";
import type { Clock } from "@platform/kernel/time";

/** A policy. `testing` and `none` do not restrict delivery. */
export interface StsPolicy {
  mode: "enforce" | "testing" | "none";
  /** Names of mail exchangers; `*.example.org` stands for one label. */
  mx: readonly string[];
  maxAgeSeconds: number;
}

/** Options of {@link StsPolicies}. */
export interface StsPoliciesOptions {
  /** Returns TXT records; throws if DNS fails. */
  readTexts: (name: string) => Promise<string[]>;
  /** Guarded; does not follow redirects, which RFC 8461 section 3.3 forbids. */
  fetch: EgressFetch;
  clock: Clock;
}

interface Cached {
  id: string;
  policy: StsPolicy;
  untilMs: number;
}

const CACHED_MAX = 10_000;
const CHECK_MS = 5 * 60_000;
const POLICY_BYTES_MAX = 65_536;
const AGE_SECONDS_MAX = 31_557_600;
const RECORD = /^v=STSv1\s*;\s*id=([A-Za-z0-9]{1,32})\s*;?\s*$/;

/** Policies by domain, cached as long as they allow. */
export class StsPolicies {
  readonly #options: StsPoliciesOptions;
  readonly #cached = new Map<string, Cached>();
  readonly #checked = new Map<string, { found: Promise<StsPolicy | undefined>; atMs: number }>();

  constructor(options: StsPoliciesOptions) {
    this.#options = options;
  }

  /** Returns the policy of a domain; undefined if it has none. Never rejects. */
  find(domain: string): Promise<StsPolicy | undefined> {
    const nowMs = this.#options.clock.monotonicMs();
    const known = this.#checked.get(domain);
    if (known !== undefined && nowMs - known.atMs < CHECK_MS) return known.found;
    const found = this.#read(domain);
    this.#checked.delete(domain);
    this.#checked.set(domain, { found, atMs: nowMs });
    if (this.#checked.size > CACHED_MAX) this.#checked.delete(this.#checked.keys().next().value!);
    return found;
  }

  // A known policy stays valid while the record or the policy cannot be read (RFC 8461 section 3.3).
  async #read(domain: string): Promise<StsPolicy | undefined> {
    const { clock, readTexts } = this.#options;
    const cached = this.#cached.get(domain);
    const valid = cached !== undefined && clock.now() < cached.untilMs ? cached : undefined;
    let id: string | undefined;
    try {
      const records = (await readTexts(`_mta-sts.${domain}`)).filter((text) =>
        text.startsWith("v=STSv1"),
      );
      id = records.length === 1 ? RECORD.exec(records[0]!)?.[1] : undefined;
    } catch {
      return valid?.policy;
    }
    if (id === undefined || id === valid?.id) return valid?.policy;
    const policy = await this.#fetch(domain);
    if (policy === undefined) return valid?.policy;
    this.#cached.delete(domain);
    this.#cached.set(domain, { id, policy, untilMs: clock.now() + policy.maxAgeSeconds * 1_000 });
    if (this.#cached.size > CACHED_MAX) this.#cached.delete(this.#cached.keys().next().value!);
    return policy;
  }

  async #fetch(domain: string): Promise<StsPolicy | undefined> {
    try {
      const response = await this.#options.fetch(
        `https://mta-sts.${domain}/.well-known/mta-sts.txt`,
      );
      const type = response.headers.get("content-type") ?? "";
      if (response.status !== 200 || !/^text\/plain\b/i.test(type)) return undefined;
      const text = await response.text();
      return text.length > POLICY_BYTES_MAX ? undefined : parseStsPolicy(text);
    } catch {
      return undefined;
    }
  }
}

/** Parses a policy (RFC 8461 section 3.2); undefined if it is invalid. */
export function parseStsPolicy(text: string): StsPolicy | undefined {
  const fields = new Map<string, string>();
  const mx: string[] = [];
  for (const line of text.split(/\r?\n/)) {
    const found = /^([a-z0-9_.-]+)\s*:\s*(.*?)\s*$/i.exec(line);
    if (found === null) continue;
    const [, name = "", value = ""] = found;
    if (name === "mx") mx.push(value.toLowerCase());
    else if (!fields.has(name)) fields.set(name, value);
  }
  const mode = fields.get("mode");
  const age = fields.get("max_age") ?? "";
  if (fields.get("version") !== "STSv1" || !/^\d{1,10}$/.test(age)) return undefined;
  if (mode !== "enforce" && mode !== "testing" && mode !== "none") return undefined;
  if (mode !== "none" && mx.length === 0) return undefined;
  return { mode, mx, maxAgeSeconds: Math.min(Number(age), AGE_SECONDS_MAX) };
}

/** True if the policy names the mail exchanger (RFC 8461 section 4.1). */
export function allowsExchanger({ mx }: StsPolicy, host: string): boolean {
  return mx.some((pattern) => {
    if (!pattern.startsWith("*.")) return pattern === host;
    const dot = host.indexOf(".");
    return dot > 0 && host.slice(dot + 1) === pattern.slice(2);
  });
}
