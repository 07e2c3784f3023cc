// The key set of an issuer: fetched, bounded, kept while the issuer is unavailable, refetched for an unknown key id.
import { createPublicKey, type JsonWebKeyInput, type KeyObject } from "node:crypto";
import type { Clock } from "../time/index.ts";
import { fetchAnywhere, fetchFromIssuer, type IssuerFetch } from "./issuer-request.ts";
import { isKeySetAlgorithm, type KeySetAlgorithm, type VerificationKey } from "./jwt.ts";

/** Options of {@link JwksStore}. */
export interface JwksOptions {
  url: string;
  clock: Clock;
  /** Age at which keys are refetched in the background, in ms. Default 300 000. */
  refreshMs?: number;
  /** Request timeout in ms. Default 5 000. */
  timeoutMs?: number;
  /** Maximum size of the issuer's response in bytes. Default 256 KiB. */
  answerBytesMax?: number;
  /**
   * Fetches the keys before the first lookup, so that tokens are accepted if the issuer is unavailable later. Repeated
   * until it succeeds, at most {@link PREFETCHES_MAX} times; failures are not reported. Default false.
   */
  prefetch?: boolean;
  /** Called with errors of requests that a lookup has started. */
  onError?: (error: unknown) => void;
  /** Sends the requests. Default: without limits of the address. */
  fetch?: IssuerFetch;
}

/** Result of a lookup; `fetching` settles when the lookup should be repeated. */
export type KeyLookup =
  | { kind: "found"; key: VerificationKey }
  | { kind: "unknown" }
  | { kind: "unavailable" }
  | { kind: "fetching"; done: Promise<void> };

const KEYS_MAX = 100;
/** Minimum interval between requests to the issuer: after a success, and after the first failure, doubled by each further one. */
const COOLDOWN_MS = 10_000;
const FAILED_COOLDOWN_MS = 1_000;
/** In about five minutes: 1, 2, 4, … seconds apart, at most a minute. */
const PREFETCHES_MAX = 11;
const PREFETCH_PAUSE_MAX_MS = 60_000;
/** Purposes of keys that sign tokens; `jwt-svid` is that of SPIFFE trust bundles. */
const SIGNING_USES: readonly unknown[] = ["sig", "jwt-svid"];
const EC_CURVES: Readonly<Record<string, KeySetAlgorithm>> = {
  "P-256": "ES256",
  "P-384": "ES384",
  "P-521": "ES512",
};
const OKP_CURVES: Readonly<Record<string, KeySetAlgorithm>> = { Ed25519: "EdDSA" };
const RSA_BITS_MIN = 2_048;
const RSA_BITS_MAX = 8_192;

/** The key set of an issuer. */
export class JwksStore {
  readonly #options: Required<JwksOptions>;
  readonly #onChange: () => void;
  #keys: ReadonlyMap<string, VerificationKey> | undefined;
  #fingerprint = "";
  #triedAtMs = Number.NEGATIVE_INFINITY;
  #fetchedAtMs = Number.NEGATIVE_INFINITY;
  #fetching: Promise<void> | undefined;
  /** Failures in a row. */
  #failures = 0;

  /** `onChange` is called when the key set has changed. */
  constructor(options: JwksOptions, onChange: () => void = () => {}) {
    this.#options = {
      refreshMs: 300_000,
      timeoutMs: 5_000,
      answerBytesMax: 262_144,
      prefetch: false,
      fetch: fetchAnywhere,
      onError: () => {},
      ...options,
    };
    this.#onChange = onChange;
    if (this.#options.prefetch) void this.#prefetch(1);
  }

  /**
   * Finds the key for a token's header. Without a kid there must be exactly one key of the algorithm. Concurrent
   * lookups share one request; unknown kids cause at most one request per 10 s, or after a failure soon another.
   */
  find(algorithm: string, kid: string | undefined): KeyLookup {
    const now = this.#options.clock.monotonicMs();
    const keys = this.#keys;
    if (keys !== undefined) {
      if (now - this.#fetchedAtMs >= this.#options.refreshMs && this.#mayFetch(now))
        void this.#startFetch(now);
      const key = findKey(keys, algorithm, kid);
      if (key !== undefined) return { kind: "found", key };
    }
    if (this.#fetching !== undefined) return { kind: "fetching", done: this.#fetching };
    if (this.#mayFetch(now)) return { kind: "fetching", done: this.#startFetch(now) };
    return { kind: keys === undefined ? "unavailable" : "unknown" };
  }

  async #prefetch(attempt: number): Promise<void> {
    const { clock } = this.#options;
    await (this.#fetching ?? this.#startFetch(clock.monotonicMs(), () => {}));
    if (this.#keys !== undefined) return;
    // The next lookup need not wait, and reports its own failure.
    this.#triedAtMs = Number.NEGATIVE_INFINITY;
    if (attempt === PREFETCHES_MAX) return;
    const pauseMs = Math.min(PREFETCH_PAUSE_MAX_MS, FAILED_COOLDOWN_MS * 2 ** (attempt - 1));
    setTimeout(() => {
      if (this.#keys === undefined) void this.#prefetch(attempt + 1);
    }, pauseMs).unref();
  }

  #mayFetch(now: number): boolean {
    return this.#fetching === undefined && now - this.#triedAtMs >= this.#readCooldownMs();
  }

  // A failed request may be all that keeps the tokens of a new key from being accepted. Without keys all are rejected.
  #readCooldownMs(): number {
    if (this.#keys === undefined) return FAILED_COOLDOWN_MS;
    if (this.#failures === 0) return COOLDOWN_MS;
    return Math.min(COOLDOWN_MS, FAILED_COOLDOWN_MS * 2 ** (this.#failures - 1));
  }

  #startFetch(now: number, onError = this.#options.onError): Promise<void> {
    this.#triedAtMs = now;
    this.#fetching = this.#fetchKeys()
      .then(
        () => {
          this.#failures = 0;
        },
        (error: unknown) => {
          this.#failures++;
          onError(error);
        },
      )
      .finally(() => {
        this.#fetching = undefined;
      });
    return this.#fetching;
  }

  async #fetchKeys(): Promise<void> {
    const { url, timeoutMs, answerBytesMax, clock, fetch: send } = this.#options;
    const document = await fetchFromIssuer({
      fetch: send,
      url,
      headers: { Accept: "application/jwk-set+json, application/json" },
      timeoutMs,
      bytesMax: answerBytesMax,
      subject: "the issuer's keys",
    });
    const keys = importKeys(document);
    if (keys.size === 0) throw new Error("the issuer's key set has no usable key");
    const fingerprint = fingerprintKeys(keys);
    this.#fetchedAtMs = clock.monotonicMs();
    this.#keys = keys;
    if (fingerprint === this.#fingerprint) return;
    this.#fingerprint = fingerprint;
    this.#onChange();
  }
}

function findKey(
  keys: ReadonlyMap<string, VerificationKey>,
  algorithm: string,
  kid: string | undefined,
): VerificationKey | undefined {
  if (kid !== undefined) return keys.get(`${algorithm}:${kid}`);
  const fitting = Array.from(keys.values()).filter((key) => key.algorithm === algorithm);
  return fitting.length === 1 ? fitting[0] : undefined;
}

// Unsupported keys are skipped: a set may have keys for other purposes (RFC 7517 section 5).
function importKeys(document: unknown): Map<string, VerificationKey> {
  const listed = (document as { keys?: unknown } | null)?.keys;
  if (!Array.isArray(listed)) throw new Error("the issuer's response is not a JWK set");
  const keys = new Map<string, VerificationKey>();
  for (const [index, jwk] of listed.slice(0, KEYS_MAX).entries()) {
    const key = importKey(jwk as Record<string, unknown> | null);
    if (key === undefined) continue;
    const { kid } = jwk as { kid?: unknown };
    // Keys without an id are found by algorithm; the space prevents a collision with real ids.
    const name = `${key.algorithm}:${typeof kid === "string" ? kid : ` ${index}`}`;
    if (!keys.has(name)) keys.set(name, key);
  }
  return keys;
}

function importKey(jwk: Record<string, unknown> | null): VerificationKey | undefined {
  if (typeof jwk !== "object" || jwk === null) return undefined;
  const algorithm = readAlgorithm(jwk);
  if (algorithm === undefined) return undefined;
  if (jwk["use"] !== undefined && !SIGNING_USES.includes(jwk["use"])) return undefined;
  const operations = jwk["key_ops"];
  if (Array.isArray(operations) && !operations.includes("verify")) return undefined;
  const { kty, n, e, crv, x, y } = jwk;
  try {
    // Public members only, in case a private key was published by mistake.
    const members =
      kty === "RSA" ? { kty, n, e } : kty === "EC" ? { kty, crv, x, y } : { kty, crv, x };
    const key = createPublicKey({ key: members, format: "jwk" } as JsonWebKeyInput);
    if (kty === "RSA" && !isStrong(key)) return undefined;
    return { algorithm, key };
  } catch {
    return undefined;
  }
}

/**
 * The one algorithm that a key is for, by its own members: a token never chooses it. RSA keys without `alg` are for RS256;
 * a curve has one algorithm.
 */
function readAlgorithm({ kty, crv, alg }: Record<string, unknown>): KeySetAlgorithm | undefined {
  if (kty === "RSA") {
    const named = alg ?? "RS256";
    const isRsa = typeof named === "string" && /^[RP]S/.test(named) && isKeySetAlgorithm(named);
    return isRsa ? named : undefined;
  }
  const curves = kty === "EC" ? EC_CURVES : kty === "OKP" ? OKP_CURVES : {};
  const byCurve = typeof crv === "string" && Object.hasOwn(curves, crv) ? curves[crv] : undefined;
  return alg === undefined || alg === byCurve ? byCurve : undefined;
}

function isStrong({ asymmetricKeyDetails }: KeyObject): boolean {
  const { modulusLength = 0, publicExponent = 0n } = asymmetricKeyDetails ?? {};
  const isOfSize = modulusLength >= RSA_BITS_MIN && modulusLength <= RSA_BITS_MAX;
  // With the exponent 1, a signature is its own text.
  return isOfSize && publicExponent >= 3n;
}

function fingerprintKeys(keys: ReadonlyMap<string, VerificationKey>): string {
  return Array.from(keys, ([name, { key }]) => {
    const der = key.export({ type: "spki", format: "der" });
    return `${name}=${der.toString("base64")}`;
  })
    .sort()
    .join();
}
