// All sessions: opening, take-over, end, wills, and their durable state.
import { randomBytes } from "node:crypto";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { PendingRecord } from "../../store/store.ts";
import type { Will } from "../packet/packets.ts";
import { MqttError, REASON } from "../packet/reason-codes.ts";
import { parseFilter } from "../topic/filter.ts";
import type { SessionConnection } from "./connection-port.ts";
import { keyOf, Session, type SessionIdentity } from "./session.ts";
import type { SessionParts } from "./session-parts.ts";
import type { LoadedSession } from "./session-records.ts";
import { fromStoredWill, toStoredWill } from "./stored-will.ts";

const SWEEP_MS = 1_000;
const ID_BYTES = 6;
/** Session expiry that never ends (section 3.1.2.11.2). */
export const NEVER_SECONDS = 0xffff_ffff;

/** Bounds of all sessions. */
export interface SessionBounds {
  sessionsMax: number;
  sessionsPerTenantMax: number;
}

interface Held {
  session: Session;
  /** True if there are records of it. */
  isStored: boolean;
  key: string;
  will: Will | undefined;
  /** Monotonic ms at which the will is published; undefined while the client is connected. */
  willAtMs: number | undefined;
  /** Monotonic ms at which the session ends. */
  endsAtMs: number;
  /** Opening and closing of one session take turns. */
  turn: Promise<void>;
}

/** The session that a client asks for. */
export interface OpenRequest {
  identity: SessionIdentity;
  cleanStart: boolean;
  expirySeconds: number;
  will: Will | undefined;
}

/** Publishes the will of a session. */
export type PublishWill = (session: Session, will: Will) => Promise<void>;

/** The sessions of all tenants. */
export class Sessions {
  readonly #parts: SessionParts;
  readonly #bounds: SessionBounds;
  readonly #publishWill: PublishWill;
  readonly #byKey = new Map<string, Held>();
  readonly #countByTenant = new Map<string, number>();
  /** Sessions that are being opened: later requests wait. */
  readonly #opening = new Map<string, Promise<void>>();
  readonly #pendingWills = new Set<Promise<void>>();
  #timer: RepeatingTimer | undefined;

  constructor(parts: SessionParts, bounds: SessionBounds, publishWill: PublishWill) {
    this.#parts = parts;
    this.#bounds = bounds;
    this.#publishWill = publishWill;
  }

  get count(): number {
    return this.#byKey.size;
  }

  /** Restores the durable sessions. */
  async load(): Promise<void> {
    const { records, store, clock } = this.#parts;
    const { sessions, orphans } = records.load();
    const pending = [...orphans];
    for (const loaded of sessions) pending.push(...this.#restore(loaded, clock.now()));
    for (let at = 0; at < pending.length; at += 5_000) {
      await store.append(pending.slice(at, at + 5_000));
    }
    this.#timer = every(SWEEP_MS, () => this.#sweep(), this.#parts.onError);
  }

  /**
   * Opens the session of a client, which takes it over from an earlier connection. When this resolves, it is durable and
   * `connection` is its only one; call `Session.start` next. Throws 0x97 at a bound.
   */
  async open(
    request: OpenRequest,
    connection: SessionConnection,
  ): Promise<{ session: Session; isPresent: boolean }> {
    const key = keyOf(request.identity);
    const before = this.#opening.get(key) ?? Promise.resolve();
    const opened = before.then(() => this.#open(key, request, connection));
    const settled = opened.then(
      () => undefined,
      () => undefined,
    );
    this.#opening.set(key, settled);
    try {
      return await opened;
    } finally {
      if (this.#opening.get(key) === settled) this.#opening.delete(key);
    }
  }

  /**
   * A connection has ended; ignored if it is not that of the session any more. `withWill`: whether the will is to be
   * published. `expirySeconds`: as the client's DISCONNECT says, if it does.
   */
  close(
    session: Session,
    connection: SessionConnection,
    { withWill, expirySeconds }: { withWill: boolean; expirySeconds?: number | undefined },
  ): void {
    const held = this.#byKey.get(keyOf(session.identity));
    if (held?.session !== session || session.connection !== connection) return;
    if (expirySeconds !== undefined) session.expirySeconds = expirySeconds;
    const pending = session.suspend();
    const nowMs = this.#parts.clock.monotonicMs();
    const { isDurable } = session;
    if (!withWill) held.will = undefined;
    const delaySeconds = held.will?.properties.willDelaySeconds ?? 0;
    if (held.will !== undefined) held.willAtMs = nowMs + delaySeconds * 1_000;
    held.endsAtMs = endOf(session, nowMs);
    void this.#takeTurn(held, async () => {
      if (!isDurable) return this.#end(held);
      const { records, store, clock } = this.#parts;
      pending.push(records.session(session.id, session.toStored(clock.now())));
      if (!withWill) pending.push(records.will(session.id, null));
      if (delaySeconds === 0) this.#sendWill(held);
      await store.append(pending);
    });
  }

  /** Publishes the wills that are due now, and saves what is unsaved. */
  async stop(): Promise<void> {
    await this.#timer?.stop();
    await Promise.all(Array.from(this.#byKey.values(), ({ turn }) => turn));
    await Promise.all(this.#pendingWills);
    await this.#parts.saver.close();
  }

  async #open(
    key: string,
    request: OpenRequest,
    connection: SessionConnection,
  ): Promise<{ session: Session; isPresent: boolean }> {
    const earlier = this.#byKey.get(key);
    if (earlier !== undefined) {
      const { session } = earlier;
      const replaced = session.connection;
      if (replaced !== undefined) {
        replaced.end(REASON.sessionTakenOver, "another client has this identifier");
        this.close(session, replaced, { withWill: true });
      }
      // The sweep may not have come yet to a session whose time is over.
      const isOver = earlier.endsAtMs <= this.#parts.clock.monotonicMs();
      if (request.cleanStart || isOver)
        await this.#takeTurn(earlier, () => this.#end(earlier), true);
      else await earlier.turn;
    }
    const held = this.#byKey.get(key);
    if (held === undefined) {
      return { session: await this.#create(key, request, connection), isPresent: false };
    }
    return { session: await this.#resume(held, request, connection), isPresent: true };
  }

  #restore(loaded: LoadedSession, now: number): PendingRecord[] {
    const { records } = this.#parts;
    const { tenant, owner, clientId, expirySeconds, disconnectedAt } = loaded.session;
    const session = new Session({ tenant, owner, clientId }, loaded.id, this.#parts);
    session.expirySeconds = expirySeconds;
    const pending: PendingRecord[] = [];
    for (const [text, options] of loaded.subscriptions) {
      const subscription = { session, filter: parseFilter(text), options };
      session.subscriptions.set(text, subscription);
      this.#parts.index.add(tenant, subscription);
    }
    for (const [place, stored] of loaded.cursors) {
      if (this.#parts.topics.findByHexId(place.split(":")[0]!) !== undefined) {
        session.readers.cursors.set(place, stored);
      } else pending.push(records.cursor(loaded.id, place, null));
    }
    for (const packetId of loaded.incoming) session.incoming.set(packetId, Promise.resolve());
    for (const [packetId, stored] of loaded.outgoing) {
      const partition = this.#findPartition(stored.topicId, stored.partition);
      if (partition === undefined) pending.push(records.outgoing(loaded.id, packetId, null));
      else session.deliveries.restore(packetId, stored, partition);
    }
    const nowMs = this.#parts.clock.monotonicMs();
    const awayMs = disconnectedAt === undefined ? 0 : Math.max(0, now - disconnectedAt);
    const will = loaded.will === undefined ? undefined : fromStoredWill(loaded.will);
    const delayMs = (will?.properties.willDelaySeconds ?? 0) * 1_000;
    this.#hold({
      session,
      isStored: true,
      key: keyOf(session.identity),
      will,
      willAtMs: will === undefined ? undefined : nowMs + Math.max(0, delayMs - awayMs),
      endsAtMs: endOf(session, nowMs - awayMs),
      turn: Promise.resolve(),
    });
    return pending;
  }

  #findPartition(topicId: string, partition: number) {
    return this.#parts.store.log.topicById(topicId)?.partitions[partition];
  }

  async #create(
    key: string,
    request: OpenRequest,
    connection: SessionConnection,
  ): Promise<Session> {
    const { identity, expirySeconds, will } = request;
    const { sessionsMax, sessionsPerTenantMax } = this.#bounds;
    const own = this.#countByTenant.get(identity.tenant) ?? 0;
    if (this.#byKey.size >= sessionsMax || own >= sessionsPerTenantMax) {
      throw new MqttError(REASON.quotaExceeded, "there are too many sessions");
    }
    const id = randomBytes(ID_BYTES).toString("hex");
    const session = new Session(identity, id, this.#parts);
    session.expirySeconds = expirySeconds;
    session.connection = connection;
    const held: Held = {
      session,
      isStored: false,
      key,
      will,
      willAtMs: undefined,
      endsAtMs: Number.POSITIVE_INFINITY,
      turn: Promise.resolve(),
    };
    this.#hold(held);
    try {
      await this.#takeTurn(held, () => this.#storeOpened(held, undefined), true);
    } catch (error) {
      this.#drop(held);
      throw error;
    }
    return session;
  }

  async #resume(held: Held, request: OpenRequest, connection: SessionConnection): Promise<Session> {
    const { session } = held;
    const before = held.will;
    session.connection = connection;
    session.isResumed = true;
    // Counts from the end of this connection (section 3.1.2.11.2): what waits for the client is still delivered.
    session.expirySeconds = request.expirySeconds;
    held.will = request.will;
    held.willAtMs = undefined;
    held.endsAtMs = Number.POSITIVE_INFINITY;
    await this.#takeTurn(held, () => this.#storeOpened(held, before), true);
    return session;
  }

  /** A session that ends with its connection is only stored for its will. */
  async #storeOpened(held: Held, before: Will | undefined): Promise<void> {
    const { session, will } = held;
    const { records, store } = this.#parts;
    if (!session.isDurable && will === undefined && !held.isStored) return;
    held.isStored = true;
    const pending = [records.session(session.id, session.toStored())];
    if (will !== undefined) pending.push(records.will(session.id, toStoredWill(will)));
    else if (before !== undefined) pending.push(records.will(session.id, null));
    await store.append(pending);
  }

  /** Ends a session with everything that belongs to it; its will is published. */
  async #end(held: Held): Promise<void> {
    if (this.#byKey.get(held.key) !== held) return;
    this.#drop(held);
    this.#sendWill(held);
    const { records, store } = this.#parts;
    const { session, isStored } = held;
    const pending = session.end();
    if (isStored) await store.append([...pending, records.will(session.id, null)]);
  }

  #sendWill(held: Held): void {
    const { will, session } = held;
    if (will === undefined) return;
    held.will = undefined;
    held.willAtMs = undefined;
    const sending = this.#publishWill(session, will)
      .then(() => this.#parts.store.append([this.#parts.records.will(session.id, null)]))
      .then(() => undefined)
      .catch(this.#parts.onError)
      .finally(() => this.#pendingWills.delete(sending));
    this.#pendingWills.add(sending);
  }

  #hold(held: Held): void {
    const { tenant } = held.session.identity;
    this.#byKey.set(held.key, held);
    this.#countByTenant.set(tenant, (this.#countByTenant.get(tenant) ?? 0) + 1);
  }

  #drop(held: Held): void {
    if (this.#byKey.get(held.key) !== held) return;
    this.#byKey.delete(held.key);
    const { tenant } = held.session.identity;
    const count = this.#countByTenant.get(tenant)! - 1;
    if (count === 0) this.#countByTenant.delete(tenant);
    else this.#countByTenant.set(tenant, count);
  }

  /** Runs work after the earlier work of a session. Without `isAwaited`, errors are only reported. */
  #takeTurn(held: Held, work: () => Promise<void>, isAwaited = false): Promise<void> {
    const done = held.turn.then(work);
    held.turn = done.catch(isAwaited ? () => undefined : this.#parts.onError);
    return isAwaited ? done : held.turn;
  }

  #sweep(): void {
    const nowMs = this.#parts.clock.monotonicMs();
    for (const held of this.#byKey.values()) {
      if (held.session.connection !== undefined) continue;
      if (held.willAtMs !== undefined && held.willAtMs <= nowMs) this.#sendWill(held);
      if (held.endsAtMs <= nowMs) void this.#takeTurn(held, () => this.#endIfAway(held));
    }
  }

  async #endIfAway(held: Held): Promise<void> {
    const isAway = held.session.connection === undefined;
    if (isAway && held.endsAtMs <= this.#parts.clock.monotonicMs()) await this.#end(held);
  }
}

function endOf({ expirySeconds }: Session, fromMs: number): number {
  if (expirySeconds === NEVER_SECONDS) return Number.POSITIVE_INFINITY;
  return fromMs + expirySeconds * 1_000;
}
