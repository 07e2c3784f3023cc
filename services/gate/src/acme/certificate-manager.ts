// Obtains and renews the certificates of names: one order at a time for a name, back-off after failures, bounds for all.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { Logger } from "@platform/kernel/log";
import { checkUsable } from "@platform/kernel/tls";
import type { Collector, ScalarSample } from "@platform/kernel/metrics";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { TlsContextSpec } from "../shared-state/index.ts";
import { AcmeClient } from "./acme-client.ts";
import { AcmeError } from "./acme-error.ts";
import type { CertificateFolder } from "./certificate-folder.ts";
import type { AcmeFiles, StoredAccount, StoredCertificate } from "./acme-files.ts";
import type { KeyType } from "./certificate-request.ts";
import { type ChallengeType, obtainCertificate, type Proof } from "./order.ts";
import type { SharedCertificates } from "./shared-certificates.ts";
import {
  askForRenewal,
  chooseByLife,
  identifyCertificate,
  type Life,
  rankCertificate,
  readLife,
} from "./renewal-time.ts";

/** Settings of the directory and its account. */
export interface AcmeSettings {
  directoryUrl: string;
  /** Trusted authorities in PEM; undefined: those of the system. */
  ca: string | undefined;
  email: string | undefined;
  binding: { kid: string; hmacKey: string } | undefined;
  profile: string | undefined;
  keyType: KeyType;
  /** The preferred one first. */
  challenges: readonly ChallengeType[];
}

/** Options of {@link CertificateManager}. */
export interface CertificateManagerOptions {
  settings: AcmeSettings;
  files: AcmeFiles;
  /** `User-Agent` of requests to the directory. */
  userAgent: string;
  /** Takes the lock of the folder. */
  lock: () => Promise<void>;
  /** Makes a proof visible to the CA; resolves with its removal. */
  publish: (proof: Proof, signal: AbortSignal) => Promise<() => Promise<void>>;
  /** Receives the certificates for other programs; undefined if there are none. */
  folder?: Pick<CertificateFolder, "write"> | undefined;
  /** State that is shared with other gateways; undefined if there is none. */
  shared: () => Pick<SharedCertificates, "lease" | "publish"> | undefined;
  /** Called after a change of the certificates; resolves when all workers use them. */
  onChanged: () => Promise<void>;
  log: Logger;
  readNowMs?: () => number;
  random?: () => number;
}

const TICK_MS = 500;
const ORDER_MS = 180_000;
const ORDERS_PARALLEL = 2;
/** Wait for the order of another gateway. */
const HELD_MS = 2_000;
const HOUR_MS = 3_600_000;
const ORDERS_PER_HOUR = 20;
/** Renewals of certificates with shorter lives do not count as orders of the hour. */
const COUNTED_LIFE_MS = 86_400_000;
const BACKOFF_MS = 60_000;
const BACKOFF_MS_MAX = 6 * HOUR_MS;
const REASON_CHARACTERS_MAX = 300;

/** Reasons of a revocation (RFC 5280, section 5.3.1). */
export const REVOCATION_REASONS = {
  unspecified: 0,
  key_compromise: 1,
  affiliation_changed: 3,
  superseded: 4,
  cessation_of_operation: 5,
} as const;

/** A name, and the state of its certificate; times in ISO 8601. */
export interface AutomaticName {
  name: string;
  not_after: string | null;
  fingerprint_sha256: string | null;
  renew_at: string | null;
  last_error: string | null;
  is_ordering: boolean;
}

type LivingCertificate = StoredCertificate & { life: Life };

interface Managed {
  readonly name: string;
  readonly isAsked: boolean;
  stored: LivingCertificate | undefined;
  /** That of all workers: the one that clients get. */
  installed: LivingCertificate | undefined;
  renewAtMs: number;
  /** Time of the next question about the renewal; undefined if the directory answers none. */
  checkAtMs: number | undefined;
  /** No order before this time. */
  retryAtMs: number;
  failures: number;
  lastError: string | undefined;
  work: Promise<void> | undefined;
}

/** The certificates of one directory. */
export class CertificateManager implements Collector {
  readonly name = "automatic certificates";
  readonly #options: CertificateManagerOptions;
  readonly #names = new Map<string, Managed>();
  readonly #stopping = new AbortController();
  readonly #readNowMs: () => number;
  readonly #random: () => number;
  #account: StoredAccount | undefined;
  #client: AcmeClient | undefined;
  #registering: Promise<void> | undefined;
  #stored = new Map<string, StoredCertificate>();
  #orders: number[] = [];
  #timer: RepeatingTimer | undefined;
  readonly #outcomes = { obtained: 0, failed: 0 };

  constructor(options: CertificateManagerOptions) {
    this.#options = options;
    this.#readNowMs = options.readNowMs ?? Date.now;
    this.#random = options.random ?? Math.random;
  }

  /** Reads the account and the certificates. Throws if the account is damaged. */
  async load(): Promise<void> {
    this.#account = await this.#options.files.readAccount();
    for (const one of await this.#options.files.readCertificates()) this.#stored.set(one.name, one);
    const { settings, userAgent } = this.#options;
    this.#client = new AcmeClient({
      directoryUrl: settings.directoryUrl,
      ca: settings.ca,
      accountKey: createPrivateKey(this.#account.key),
      userAgent,
      readNowMs: this.#readNowMs,
      signal: this.#stopping.signal,
    });
    this.#client.accountUrl = this.#account.url ?? undefined;
  }

  /** Names of stored certificates that were asked for in handshakes. */
  listAsked(): string[] {
    return [...this.#stored.values()].flatMap(({ name, isAsked }) => (isAsked ? [name] : []));
  }

  /**
   * Sets the names that have certificates from now on; those of other names are not renewed, and stay on disk. Returns true
   * if the workers have to use other certificates for it: {@link install} makes them.
   */
  setNames(names: Iterable<{ name: string; isAsked: boolean }>): boolean {
    let isChanged = false;
    const wanted = new Map([...names].map((one) => [one.name, one]));
    for (const [name, { work, stored }] of this.#names) {
      if (wanted.has(name) || work !== undefined) continue;
      this.#names.delete(name);
      isChanged ||= stored !== undefined;
    }
    for (const { name, isAsked } of wanted.values()) {
      if (this.#names.has(name)) continue;
      const stored = this.#stored.get(name);
      const managed: Managed = {
        name,
        isAsked,
        stored: undefined,
        installed: undefined,
        renewAtMs: 0,
        checkAtMs: 0,
        retryAtMs: 0,
        failures: 0,
        lastError: undefined,
        work: undefined,
      };
      if (stored !== undefined) this.#adopt(managed, stored);
      isChanged ||= stored !== undefined;
      this.#names.set(name, managed);
    }
    return isChanged;
  }

  /** Makes all workers use the stored certificates. */
  async install(): Promise<void> {
    await this.#writeFolder();
    const listed = [...this.#names.values()].map((managed) => [managed, managed.stored] as const);
    await this.#options.onChanged();
    for (const [managed, stored] of listed) managed.installed = stored;
  }

  /** Starts orders and renewals. */
  start(): void {
    const { log } = this.#options;
    this.#timer = every(
      TICK_MS,
      () => {
        this.#tick();
        return this.#writeFolder();
      },
      (error) => log.error("cannot plan the renewal of certificates", { error: String(error) }),
    );
    void this.#timer.run();
  }

  /** Ends what is in flight. */
  async stop(): Promise<void> {
    this.#stopping.abort();
    await this.#timer?.stop();
    for (const { work } of this.#names.values()) await work;
  }

  /** Certificates that are stored here. */
  listStored(): StoredCertificate[] {
    return [...this.#stored.values()];
  }

  /** Uses a certificate of another gateway, if it is newer than the own one. Throws if it cannot be stored. */
  async adopt(certificate: StoredCertificate): Promise<void> {
    const { name, certPem, keyPem } = certificate;
    const held = this.#stored.get(name);
    if (held !== undefined && rankCertificate(held.certPem) >= rankCertificate(certPem)) return;
    if (!isUsable(certPem, keyPem)) return;
    await this.#options.lock();
    await this.#options.files.checkWritable();
    await this.#options.files.writeCertificate(certificate);
    this.#stored.set(name, certificate);
    const managed = this.#names.get(name);
    if (managed === undefined) return;
    this.#adopt(managed, certificate);
    managed.failures = 0;
    managed.retryAtMs = 0;
    managed.lastError = undefined;
    await this.install();
    this.#options.log.info("certificate of another gateway adopted", describeLife(managed));
  }

  /** Certificates for the listener. */
  list(): TlsContextSpec[] {
    return [...this.#names.values()].flatMap(({ name, stored }) =>
      stored === undefined
        ? []
        : {
            source: "acme",
            names: [name],
            certPem: stored.certPem,
            keyPem: stored.keyPem,
            file: this.#options.files.describePlace(name),
          },
    );
  }

  /** All names, with the state of the certificates that clients get. */
  listNames(): AutomaticName[] {
    return [...this.#names.values()].map(({ name, installed, renewAtMs, lastError, work }) => ({
      name,
      not_after: installed === undefined ? null : new Date(installed.life.endMs).toISOString(),
      fingerprint_sha256:
        installed === undefined ? null : new X509Certificate(installed.certPem).fingerprint256,
      renew_at: installed === undefined ? null : new Date(renewAtMs).toISOString(),
      last_error: lastError ?? null,
      is_ordering: work !== undefined,
    }));
  }

  /** State of the renewal of a certificate by the path of its file. */
  findRenewal(file: string): { renewAtMs: number; lastError: string | undefined } | undefined {
    for (const { name, renewAtMs, lastError } of this.#names.values()) {
      if (this.#options.files.describePlace(name) === file) return { renewAtMs, lastError };
    }
    return undefined;
  }

  /** A fault, or a name without a certificate, for the readiness probe; undefined if all is well. */
  describe(): string | undefined {
    for (const { name, installed, lastError } of this.#names.values()) {
      if (lastError !== undefined) return `${name}: ${lastError}`;
      if (installed === undefined) return `${name} has no certificate yet`;
    }
    return undefined;
  }

  collect() {
    return [
      {
        type: "counter" as const,
        name: "platform_gate_acme_orders_total",
        help: "Orders of automatic certificates by outcome.",
        samples: Object.entries(this.#outcomes).map(([outcome, value]): ScalarSample => ({
          labels: [["outcome", outcome]],
          value,
        })),
      },
    ];
  }

  /** Orders a new certificate of a name now, in place of a wait after a failure, too. Throws `not_found`. */
  renew(name: string): void {
    const managed = this.#find(name);
    managed.renewAtMs = 0;
    managed.retryAtMs = 0;
    // A renewal that a person asks for counts, and is not held back by earlier ones.
    this.#orders = this.#orders.slice(1 - ORDERS_PER_HOUR);
    void this.#timer?.run();
  }

  /** Revokes the certificate of a name at the CA, and orders another one. Throws `not_found`, or `upstream_unreachable`. */
  async revoke(name: string, reason: keyof typeof REVOCATION_REASONS): Promise<void> {
    const managed = this.#find(name);
    const { stored } = managed;
    if (stored === undefined) throw new PlatformError("not_found", `${name} has no certificate`);
    const certificate = new X509Certificate(stored.certPem).raw.toString("base64url");
    try {
      await this.#register();
      const { revokeCert } = await this.#client!.readDirectory();
      await this.#client!.post(revokeCert, { certificate, reason: REVOCATION_REASONS[reason] });
    } catch (cause) {
      const isDone = cause instanceof AcmeError && cause.type === "alreadyRevoked";
      if (!isDone) {
        throw new PlatformError("upstream_unreachable", `not revoked: ${describe(cause)}`, {
          cause,
        });
      }
    }
    this.#options.log.warn("certificate revoked", { name, reason, audit: true });
    this.renew(name);
  }

  #find(name: string): Managed {
    const managed = this.#names.get(name);
    if (managed !== undefined) return managed;
    throw new PlatformError("not_found", `${name} is not a name with an automatic certificate`);
  }

  #adopt(managed: Managed, stored: StoredCertificate): void {
    const life = readLife(stored.certPem);
    managed.stored = { ...stored, life };
    managed.renewAtMs = chooseByLife(life, this.#random());
    managed.checkAtMs = 0;
  }

  // Also where an earlier attempt has failed.
  async #writeFolder(): Promise<void> {
    const used = [...this.#names.values()].flatMap(({ stored }) => stored ?? []);
    await this.#options.folder?.write(used);
  }

  #tick(): void {
    const now = this.#readNowMs();
    let active = 0;
    for (const { work } of this.#names.values()) if (work !== undefined) active += 1;
    for (const managed of this.#names.values()) {
      if (active >= ORDERS_PARALLEL || this.#stopping.signal.aborted) return;
      if (managed.work !== undefined || now < managed.retryAtMs) continue;
      const { stored, renewAtMs, checkAtMs } = managed;
      const isDue = stored === undefined || now >= renewAtMs;
      const asks = !isDue && checkAtMs !== undefined && now >= checkAtMs;
      if (!asks && !(isDue && this.#mayOrder(managed, now))) continue;
      active += 1;
      const work = asks ? this.#ask(managed) : this.#order(managed);
      managed.work = work.finally(() => (managed.work = undefined));
    }
  }

  #mayOrder(managed: Managed, now: number): boolean {
    this.#orders = this.#orders.filter((at) => at > now - HOUR_MS);
    return !isCounted(managed) || this.#orders.length < ORDERS_PER_HOUR;
  }

  async #ask(managed: Managed): Promise<void> {
    const { stored } = managed;
    if (stored === undefined) return;
    const now = this.#readNowMs();
    try {
      const advice = await askForRenewal(this.#client!, stored.certPem, now, this.#random());
      if (managed.stored !== stored) return;
      managed.checkAtMs = advice?.checkAtMs;
      if (advice !== undefined) managed.renewAtMs = Math.min(advice.renewAtMs, stored.life.endMs);
    } catch (error) {
      // The time by its life stays.
      managed.checkAtMs = now + HOUR_MS;
      this.#options.log.warn("cannot ask for the time of renewal", {
        name: managed.name,
        reason: describe(error),
      });
    }
  }

  async #order(managed: Managed): Promise<void> {
    const { name, stored: before } = managed;
    const { log, files } = this.#options;
    const deadline = AbortSignal.timeout(ORDER_MS);
    const lease = await this.#options.shared()?.lease(name);
    if (lease === "held") {
      // The certificate of the other gateway arrives by itself.
      managed.retryAtMs = this.#readNowMs() + HELD_MS;
      return;
    }
    try {
      // Another gateway may have obtained it meanwhile.
      if (managed.stored !== before) return;
      if (isCounted(managed)) this.#orders.push(this.#readNowMs());
      await this.#options.lock();
      await files.checkWritable();
      await this.#register();
      const obtained = await this.#obtain(managed, deadline);
      const stored = { name, ...obtained, isAsked: managed.isAsked };
      await files.writeCertificate(stored);
      this.#stored.set(name, stored);
      this.#adopt(managed, stored);
      this.#outcomes.obtained += 1;
      managed.failures = 0;
      managed.retryAtMs = 0;
      managed.lastError = undefined;
      await this.#options.shared()?.publish(stored);
      await this.install();
      log.info("certificate obtained", describeLife(managed));
    } catch (error) {
      if (this.#stopping.signal.aborted) return;
      this.#noteFailure(managed, deadline.aborted ? createTimeout() : error);
    } finally {
      await lease?.release();
    }
  }

  #obtain(managed: Managed, deadline: AbortSignal) {
    const { settings, publish } = this.#options;
    const { name, stored, failures } = managed;
    const possible: readonly ChallengeType[] = name.startsWith("*.")
      ? ["dns-01"]
      : settings.challenges;
    // After a failure, another kind is tried.
    const first = failures % possible.length;
    return obtainCertificate({
      client: this.#client!,
      name,
      challenges: [...possible.slice(first), ...possible.slice(0, first)],
      keyType: settings.keyType,
      profile: settings.profile,
      replaces: stored === undefined ? undefined : this.#identifyReplaced(stored.certPem),
      publish,
      readNowMs: this.#readNowMs,
      signal: AbortSignal.any([this.#stopping.signal, deadline]),
    });
  }

  // Only directories with renewal information know the field.
  #identifyReplaced(certPem: string): string | undefined {
    return this.#client!.hasRenewalInfo ? identifyCertificate(certPem) : undefined;
  }

  #noteFailure(managed: Managed, error: unknown): void {
    const { log } = this.#options;
    managed.failures += 1;
    this.#outcomes.failed += 1;
    managed.lastError = describe(error);
    const askedMs = error instanceof AcmeError ? (error.retryAfterMs ?? 0) : 0;
    const doubled = Math.min(BACKOFF_MS_MAX, BACKOFF_MS * 2 ** (managed.failures - 1));
    const waitMs = Math.max(doubled * (0.75 + this.#random() / 2), askedMs);
    managed.retryAtMs = this.#readNowMs() + waitMs;
    log.error("cannot obtain a certificate", {
      name: managed.name,
      reason: managed.lastError,
      wait_s: Math.round(waitMs / 1_000),
      expires:
        managed.stored === undefined ? null : new Date(managed.stored.life.endMs).toISOString(),
    });
  }

  /** One registration at a time. The key is on disk before the CA has it: a crash in between makes no second account. */
  #register(): Promise<void> {
    this.#registering ??= this.#registerOnce().finally(() => (this.#registering = undefined));
    return this.#registering;
  }

  async #registerOnce(): Promise<void> {
    const client = this.#client!;
    const { files, settings, log } = this.#options;
    if (client.accountUrl !== undefined) return;
    await files.writeAccount(this.#account!);
    const url = await client.register({ email: settings.email, binding: settings.binding });
    this.#account = { ...this.#account!, url };
    await files.writeAccount(this.#account);
    log.info("account registered", { directory: settings.directoryUrl });
  }
}

function isUsable(certPem: string, keyPem: string): boolean {
  try {
    checkUsable({ cert: certPem, key: keyPem }, "");
    return new X509Certificate(certPem).checkPrivateKey(createPrivateKey(keyPem));
  } catch {
    // The gateway that has ordered it reports that.
    return false;
  }
}

function isCounted({ stored }: Managed): boolean {
  return stored === undefined || stored.life.endMs - stored.life.startMs >= COUNTED_LIFE_MS;
}

function describeLife({ name, stored }: Managed): { name: string; not_after: string | null } {
  const not_after = stored === undefined ? null : new Date(stored.life.endMs).toISOString();
  return { name, not_after };
}

function createTimeout(): AcmeError {
  return new AcmeError("", `no certificate within ${ORDER_MS / 1_000} s`);
}

function describe(error: unknown): string {
  const text = error instanceof Error ? error.message : String(error);
  return text.slice(0, REASON_CHARACTERS_MAX);
}
