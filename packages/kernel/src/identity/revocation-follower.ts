// Follows the revocation feed of the identity service. While the feed cannot be read, the known revocations stay in force.
import type { Logger } from "../log/index.ts";
import type { Collector, MetricFamily } from "../metrics/index.ts";
import { toLiveSecret, type LiveSecret, type Secret } from "../secrets/index.ts";
import { every, type Clock, type RepeatingTimer } from "../time/index.ts";
import { fetchFromIssuer } from "./issuer-request.ts";
import { isRevocationKind, type Revocation, type RevocationSet } from "./revocations.ts";

/** Options of {@link RevocationFollower}. */
export interface RevocationFollowerOptions {
  /** URL of the feed. */
  url: string;
  /** Bearer token for the feed. */
  token: Secret;
  /** Receives the entries. */
  revocations: RevocationSet;
  /** Called after entries were added, or after the policy version has changed. */
  onAdded: (added: readonly Revocation[]) => void;
  clock: Clock;
  log: Logger;
  /** Interval between two requests in ms; a revocation applies after this time at the latest. Default 1 000. */
  intervalMs?: number;
  /** Timeout of a request in ms. Default 5 000. */
  timeoutMs?: number;
}

/** Entries of one response. Identity sends up to 1 000. */
const PAGE_ENTRIES_MAX = 1_000;
const PAGE_BYTES_MAX = 1_048_576;
/** Pages read in a row before the next tick. */
const PAGES_MAX = 100;
const VALUE_CHARACTERS_MAX = 1_024;
const SWEEP_MS = 60_000;
/** Interval between two log lines about the same outage. */
const REPEAT_LOG_MS = 60_000;
/** Age of the last successful read from which readiness shows a warning. */
const LATE_MS = 10_000;
/**
 * Time for identity to start: until the first successful read, its refused connections, 503 and timeouts are not logged.
 * As long as `platform up` waits for a service.
 */
const START_MS = 90_000;
/** Failures of a service that is still starting. */
const STARTING = /ECONNREFUSED|ECONNRESET|status 503|timeout/;

interface Page {
  entries: readonly Revocation[];
  /** Entries with members that this version does not support. */
  skipped: number;
  next: number;
  /** Last position of the feed; undefined if the service does not send it. */
  latest: number | undefined;
  /** Policy version of the issuer; undefined if the service does not send it. */
  policyVersion: number | undefined;
  isFull: boolean;
}

/** Reads the feed every second, beginning with all entries that have not expired. */
export class RevocationFollower implements Collector {
  readonly name = "revocations";
  readonly #options: Required<RevocationFollowerOptions>;
  readonly #token: LiveSecret;
  #timer: RepeatingTimer | undefined;
  #position = 0;
  #startedMs = 0;
  #readAtMs: number | undefined;
  #failingSinceMs: number | undefined;
  #loggedAtMs = 0;
  #sweptAtMs = 0;
  #failures = 0;
  #skipped = 0;

  constructor(options: RevocationFollowerOptions) {
    this.#options = { intervalMs: 1_000, timeoutMs: 5_000, ...options };
    this.#token = toLiveSecret(options.token);
  }

  /** Starts to follow; the first request is sent immediately. */
  start(): void {
    this.#startedMs = this.#options.clock.monotonicMs();
    this.#timer = every(
      this.#options.intervalMs,
      () => this.#follow(),
      (error) => this.#noteFailure(error),
    );
    void this.#timer.run();
  }

  /** Stops; resolves when the request in flight has ended. */
  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  /** The warning of `/readyz`; undefined while the feed is read. */
  describe(): string | undefined {
    const ageMs = this.#readAgeMs();
    if (ageMs < LATE_MS) return undefined;
    const seconds = Math.floor(ageMs / 1_000);
    const state =
      this.#readAtMs === undefined
        ? `revocations have not been read for ${seconds} s since the start`
        : `revocations were last read ${seconds} s ago`;
    return `identity does not respond: ${state}; later ones apply when it does`;
  }

  collect(): MetricFamily[] {
    const { revocations } = this.#options;
    return [
      scalar("gauge", "platform_revocations", "Known revocations.", revocations.size),
      scalar(
        "gauge",
        "platform_revocations_age_seconds",
        "Time since the revocation feed was last read.",
        this.#readAgeMs() / 1_000,
      ),
      scalar(
        "counter",
        "platform_revocations_failures_total",
        "Failed reads of the revocation feed.",
        this.#failures,
      ),
      scalar(
        "counter",
        "platform_revocations_skipped_total",
        "Entries of the revocation feed that this version does not support.",
        this.#skipped,
      ),
      scalar(
        "counter",
        "platform_revocations_dropped_total",
        "Revocations dropped before their expiry because there were too many.",
        revocations.dropped,
      ),
    ];
  }

  #readAgeMs(): number {
    return this.#options.clock.monotonicMs() - (this.#readAtMs ?? this.#startedMs);
  }

  async #follow(): Promise<void> {
    const { clock, revocations } = this.#options;
    for (let pages = 0; pages < PAGES_MAX; pages++) {
      const page = await this.#readPage();
      // A lower last position: identity was restored from a backup. Its entries are read again from the start.
      const wasReset = page.latest !== undefined && page.latest < this.#position;
      this.#position = wasReset ? 0 : page.next;
      this.#apply(page);
      if (!wasReset && !page.isFull) break;
    }
    this.#noteSuccess();
    const now = clock.monotonicMs();
    if (now - this.#sweptAtMs < SWEEP_MS) return;
    this.#sweptAtMs = now;
    revocations.sweep(clock.now() / 1_000);
  }

  async #readPage(): Promise<Page> {
    const { url, timeoutMs } = this.#options;
    const address = new URL(url);
    address.searchParams.set("since", String(this.#position));
    const document = await fetchFromIssuer({
      url: address.href,
      headers: { Accept: "application/json", Authorization: `Bearer ${this.#token.value}` },
      timeoutMs,
      bytesMax: PAGE_BYTES_MAX,
      subject: "the revocation feed",
    });
    return readPage(document, this.#position);
  }

  #apply({ entries, skipped, policyVersion }: Page): void {
    const { revocations, onAdded, log } = this.#options;
    if (skipped > 0) {
      this.#skipped += skipped;
      log.warn("entries of the revocation feed were skipped: their form is unknown", { skipped });
    }
    const isSameVersion = revocations.policyVersion === policyVersion;
    revocations.policyVersion = policyVersion;
    if (entries.length === 0 && isSameVersion) return;
    const { dropped } = revocations;
    revocations.add(entries);
    if (revocations.dropped > dropped) {
      log.warn("there are too many revocations: the oldest were dropped", {
        dropped: revocations.dropped - dropped,
      });
    }
    onAdded(entries);
  }

  #noteSuccess(): void {
    const { clock, log } = this.#options;
    this.#readAtMs = clock.monotonicMs();
    if (this.#failingSinceMs === undefined) return;
    const seconds = Math.round((this.#readAtMs - this.#failingSinceMs) / 1_000);
    log.info("the revocation feed is read again", { outage_seconds: seconds });
    this.#failingSinceMs = undefined;
  }

  #noteFailure(error: unknown): void {
    const { clock, log, url } = this.#options;
    const now = clock.monotonicMs();
    this.#failures++;
    // At a start of the platform, identity may be starting as well.
    const isStarting = this.#readAtMs === undefined && this.#readAgeMs() < START_MS;
    if (isStarting && STARTING.test(describeError(error))) return;
    const isFirst = this.#failingSinceMs === undefined;
    this.#failingSinceMs ??= now;
    if (!isFirst && now - this.#loggedAtMs < REPEAT_LOG_MS) return;
    this.#loggedAtMs = now;
    log.warn("the revocation feed cannot be read: tokens revoked from now on stay valid", {
      url,
      error: describeError(error),
    });
  }
}

function readPage(document: unknown, since: number): Page {
  const {
    revocations,
    next,
    latest,
    policy_version: policyVersion,
  } = (document ?? {}) as Record<string, unknown>;
  const isRead =
    Array.isArray(revocations) &&
    revocations.length <= PAGE_ENTRIES_MAX &&
    isPosition(next) &&
    next >= since &&
    (latest === undefined || isPosition(latest)) &&
    (policyVersion === undefined || isPosition(policyVersion));
  if (!isRead) throw new Error("the revocation feed: the response has an unknown form");
  const entries = revocations.flatMap((entry) => readEntry(entry) ?? []);
  return {
    entries,
    skipped: revocations.length - entries.length,
    next,
    latest,
    policyVersion,
    // A page that does not advance would be read for ever.
    isFull: revocations.length === PAGE_ENTRIES_MAX && next > since,
  };
}

function readEntry(given: unknown): Revocation | undefined {
  const { kind, value, epoch, expires_at } = (given ?? {}) as Record<string, unknown>;
  if (!isRevocationKind(kind) || typeof value !== "string") return undefined;
  if (value === "" || value.length > VALUE_CHARACTERS_MAX) return undefined;
  if (typeof expires_at !== "number" || !Number.isFinite(expires_at)) return undefined;
  if (kind !== "sub") return { kind, value, expires_at };
  return typeof epoch === "number" && Number.isFinite(epoch)
    ? { kind, value, epoch, expires_at }
    : undefined;
}

function isPosition(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

// The reason of a failed fetch is in its cause.
function describeError(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  return cause instanceof Error ? `${error.message}: ${cause.message}` : error.message;
}

function scalar(
  type: "counter" | "gauge",
  name: string,
  help: string,
  value: number,
): MetricFamily {
  return { type, name, help, samples: [{ labels: [], value }] };
}
