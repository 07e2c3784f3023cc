// Service discovery: follows the addresses of services that routes name. The last answer stays while the source is down.
import { createEgress, type EgressFetch } from "@platform/kernel/egress";
import type { Logger } from "@platform/kernel/log";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { DiscoveryAddress } from "../config/discovery-address.ts";
import { listSystemServers } from "../dns/query.ts";
import {
  parseServiceDocument,
  readServiceRecords,
  type ServiceAddress,
} from "./service-addresses.ts";
import type { SourceView } from "./source-view.ts";

/** Options of {@link Discovery}. */
export interface DiscoveryOptions {
  address: DiscoveryAddress;
  /** The address as configured. */
  text: string;
  log: Logger;
  /** A clock in ms that is never set back. Default: that of the process. */
  readNowMs?: () => number;
}

/** Finds the present addresses of a service; empty if it has none, or is not known yet. */
export type FindService = (name: string) => readonly ServiceAddress[];

const TICK_MS = 250;
/** Changes reach the workers at most once in this time. */
const CHANGE_MS = 1_000;
const DOCUMENT_MS = 5_000;
const RETRY_MS = 5_000;
/** Readiness warns of a source that is down for longer. */
const PATIENCE_MS = 60_000;
/** A change waits at most this long for the addresses of a service that is new. */
const PREPARE_MS = 3_000;
/** A change that names a service may take this long until it is active. */
const UNUSED_MS = 60_000;
const ANSWER_BYTES_MAX = 4 * 1_048_576;
const SERVICES_MAX = 1_000;
const LOOKUPS_MAX = 8;
const NAMES_SHOWN_MAX = 100;
const ANY_NETWORK = ["0.0.0.0/0", "::/0"];
const DOCUMENT = "";

/** State of one service, or of the document. */
interface Followed {
  addresses: readonly ServiceAddress[] | undefined;
  dueAtMs: number;
  lookup: Promise<void> | undefined;
  fault: string | undefined;
  downSinceMs: number | undefined;
  /** A route named it then. */
  usedAtMs: number;
}

/** Follows the services of one gateway. */
export class Discovery {
  readonly name = "discovery";
  readonly #options: DiscoveryOptions;
  readonly #readNowMs: () => number;
  readonly #fetch: EgressFetch;
  /** DNS: services by name; HTTP: the document alone. */
  readonly #followed = new Map<string, Followed>();
  #document: ReadonlyMap<string, readonly ServiceAddress[]> = new Map();
  #etag: string | undefined;
  #readAtMs: number | undefined;
  #revision = 0;
  #appliedRevision = 0;
  #appliedAtMs = -Infinity;
  #applyFault: string | undefined;
  #isFull = false;
  #timer: RepeatingTimer | undefined;

  constructor(options: DiscoveryOptions) {
    this.#options = options;
    this.#readNowMs = options.readNowMs ?? (() => performance.now());
    this.#fetch = createEgress({
      allowedNetworks: ANY_NETWORK,
      timeoutMs: DOCUMENT_MS,
      answerBytesMax: ANSWER_BYTES_MAX,
      callsMax: 1,
    });
    if (options.address.kind === "http") this.#follow(DOCUMENT);
  }

  readonly find: FindService = (name) =>
    (this.#options.address.kind === "http"
      ? this.#document.get(name)
      : this.#followed.get(name)?.addresses) ?? [];

  /** Follows services, and waits a short time for the addresses of new ones. */
  async prepare(names: Iterable<string>): Promise<void> {
    if (this.#options.address.kind === "dns") for (const name of names) this.#follow(name);
    const unknown = [...this.#followed].filter(([, { addresses }]) => addresses === undefined);
    if (unknown.length === 0) return;
    // A source that is down does not hold up each change.
    const waiting = unknown.filter(([, { downSinceMs }]) => downSinceMs === undefined);
    const lookups = Promise.all(waiting.map(([name, one]) => this.#lookUp(name, one)));
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, PREPARE_MS);
    });
    await Promise.race([lookups, late]);
    clearTimeout(timer);
  }

  /** Looks for changes from now on; `onChanged` brings them to the workers, `listNames` has the services of active routes. */
  start(listNames: () => ReadonlySet<string>, onChanged: () => Promise<void>): void {
    this.#timer = every(
      TICK_MS,
      async () => {
        this.#drop(listNames());
        this.#lookUpDue();
        const revision = this.#revision;
        const now = this.#readNowMs();
        if (revision === this.#appliedRevision || now - this.#appliedAtMs < CHANGE_MS) return;
        this.#appliedAtMs = now;
        await onChanged();
        this.#appliedRevision = revision;
        this.#applyFault = undefined;
      },
      (error) => {
        const reason = toReason(error);
        if (reason !== this.#applyFault) {
          this.#options.log.error("addresses of services cannot be used", { reason });
        }
        this.#applyFault = reason;
      },
    );
  }

  async stop(): Promise<void> {
    await this.#timer?.stop();
  }

  /** The warning of `/readyz`; undefined if there is none. */
  describe(): string | undefined {
    const now = this.#readNowMs();
    for (const { fault, downSinceMs } of this.#followed.values()) {
      if (downSinceMs !== undefined && now - downSinceMs >= PATIENCE_MS) return fault;
    }
    return this.#applyFault;
  }

  collect() {
    return [];
  }

  /** For `GET /api/v1/admin/sources`. */
  view(): SourceView {
    const fault = [...this.#followed.values()].find((one) => one.fault !== undefined)?.fault;
    return {
      kind: "discovery",
      address: this.#options.text,
      version: this.#describeVersion(),
      readAtMs: this.#readAtMs,
      error: fault ?? this.#applyFault,
    };
  }

  #describeVersion(): string {
    const known =
      this.#options.address.kind === "http"
        ? [...this.#document].map(([name, { length }]) => `${name}:${length}`)
        : [...this.#followed].map(([name, one]) => `${name}:${one.addresses?.length ?? "?"}`);
    const more =
      known.length > NAMES_SHOWN_MAX ? [`and ${known.length - NAMES_SHOWN_MAX} more`] : [];
    return [...known.slice(0, NAMES_SHOWN_MAX), ...more].join(" ");
  }

  #follow(name: string): void {
    const known = this.#followed.get(name);
    if (known !== undefined) {
      known.usedAtMs = this.#readNowMs();
      return;
    }
    if (this.#followed.size >= SERVICES_MAX) {
      if (!this.#isFull) {
        this.#options.log.warn("too many services are named, some have no address", {
          services_max: SERVICES_MAX,
        });
      }
      this.#isFull = true;
      return;
    }
    this.#followed.set(name, {
      addresses: undefined,
      dueAtMs: 0,
      lookup: undefined,
      fault: undefined,
      downSinceMs: undefined,
      usedAtMs: this.#readNowMs(),
    });
  }

  #drop(used: ReadonlySet<string>): void {
    if (this.#options.address.kind === "http") return;
    for (const name of used) this.#follow(name);
    const oldest = this.#readNowMs() - UNUSED_MS;
    for (const [name, { usedAtMs }] of this.#followed) {
      if (usedAtMs < oldest) this.#followed.delete(name);
    }
  }

  #lookUpDue(): void {
    const now = this.#readNowMs();
    let active = 0;
    for (const { lookup } of this.#followed.values()) if (lookup !== undefined) active++;
    for (const [name, one] of this.#followed) {
      if (active >= LOOKUPS_MAX) return;
      if (one.lookup !== undefined || one.dueAtMs > now) continue;
      active++;
      void this.#lookUp(name, one);
    }
  }

  #lookUp(name: string, one: Followed): Promise<void> {
    one.lookup ??= this.#read(name, one).finally(() => (one.lookup = undefined));
    return one.lookup;
  }

  async #read(name: string, one: Followed): Promise<void> {
    const { address, log } = this.#options;
    try {
      const pauseMs =
        address.kind === "http"
          ? await this.#readDocument(address.url, one)
          : await this.#readRecords(address, name, one);
      const now = this.#readNowMs();
      this.#readAtMs = Date.now();
      one.dueAtMs = now + pauseMs;
      if (one.downSinceMs !== undefined) log.info("discovery works again", { service: name });
      one.downSinceMs = undefined;
    } catch (error) {
      const now = this.#readNowMs();
      const reason = toReason(error);
      if (reason !== one.fault) log.warn("cannot read addresses of services", { reason });
      one.fault = reason;
      one.downSinceMs ??= now;
      one.dueAtMs = now + RETRY_MS;
    }
  }

  async #readRecords(
    { domain, server }: Extract<DiscoveryAddress, { kind: "dns" }>,
    name: string,
    one: Followed,
  ): Promise<number> {
    const servers = server === undefined ? listSystemServers() : [server];
    const { addresses, ttlSeconds, fault } = await readServiceRecords({
      name,
      domain,
      servers,
      resolvesNames: server !== undefined,
      known: one.addresses,
    });
    this.#note(name, one.addresses, addresses);
    one.addresses = addresses;
    if (fault !== undefined && fault !== one.fault) {
      this.#options.log.warn("a host of a service cannot be resolved", {
        service: name,
        reason: fault,
      });
    }
    one.fault = fault;
    return ttlSeconds * 1_000;
  }

  async #readDocument(url: string, one: Followed): Promise<number> {
    const headers = {
      Accept: "application/json",
      ...(this.#etag === undefined ? {} : { "If-None-Match": this.#etag }),
    };
    const answer = await this.#fetch(url, { headers });
    if (answer.status === 304 && this.#etag !== undefined) return DOCUMENT_MS;
    if (answer.status !== 200) throw new Error(`the endpoint answers with status ${answer.status}`);
    const { services, faulty } = parseServiceDocument(await answer.text());
    const next = new Map(services);
    for (const name of faulty.keys()) {
      const known = this.#document.get(name);
      if (known !== undefined) next.set(name, known);
    }
    for (const name of new Set([...next.keys(), ...this.#document.keys()])) {
      this.#note(name, this.#document.get(name), next.get(name) ?? []);
    }
    this.#document = next;
    one.addresses = [];
    const [fault] = faulty.values();
    if (fault !== undefined && fault !== one.fault) {
      this.#options.log.warn("addresses of a service are not valid", { reason: fault });
    }
    one.fault = fault;
    // A document with a fault is read in full until it is repaired.
    this.#etag = fault === undefined ? (answer.headers.get("etag") ?? undefined) : undefined;
    return DOCUMENT_MS;
  }

  #note(
    name: string,
    before: readonly ServiceAddress[] | undefined,
    after: readonly ServiceAddress[],
  ): void {
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(after)) return;
    this.#revision++;
    this.#options.log.info("addresses of a service changed", {
      service: name,
      addresses: after.length,
    });
  }
}

function toReason(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
