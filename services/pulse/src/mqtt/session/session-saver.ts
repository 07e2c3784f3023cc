// Saves what clients have acknowledged, for all sessions together, a little later.
import type { StoredRanges } from "../../store/offset-ranges.ts";
import type { PendingRecord, Store } from "../../store/store.ts";
import type { SessionRecords, StoredOutgoing } from "./session-records.ts";

/** Delay before acknowledgements are saved. A crash sends unsaved ones of QoS 1 again. */
const SAVE_MS = 20;
/** Delay after a failed write. */
const RETRY_MS = 1_000;
/** Records of one write. */
const RECORDS_MAX = 5_000;

/** A session, as the saver sees it. The values are read when they are written. */
export interface SavedSession {
  readonly id: string;
  readonly isDurable: boolean;
  storedCursor(place: string): StoredRanges | undefined;
  storedOutgoing(packetId: number): StoredOutgoing | undefined;
}

interface Dirty {
  cursors: Set<string>;
  packetIds: Set<number>;
}

/** The unsaved changes of sessions. */
export class SessionSaver {
  readonly #store: Store;
  readonly #records: SessionRecords;
  readonly #onError: (error: unknown) => void;
  readonly #dirty = new Map<SavedSession, Dirty>();
  #timer: NodeJS.Timeout | undefined;
  #saving: Promise<void> | undefined;
  #isClosed = false;

  constructor(store: Store, records: SessionRecords, onError: (error: unknown) => void) {
    this.#store = store;
    this.#records = records;
    this.#onError = onError;
  }

  /** Notes that the client has acknowledged messages of a partition. */
  markCursor(session: SavedSession, place: string): void {
    this.#of(session).cursors.add(place);
  }

  /** Notes that a stored message in flight has changed. */
  markOutgoing(session: SavedSession, packetId: number): void {
    this.#of(session).packetIds.add(packetId);
  }

  /** Drops the changes of a session that has ended. */
  forget(session: SavedSession): void {
    this.#dirty.delete(session);
  }

  /** Saves all changes; resolves when they are durable or have failed, which is reported. */
  async save(): Promise<void> {
    while (this.#saving !== undefined) await this.#saving;
    this.#saving = this.#write().finally(() => (this.#saving = undefined));
    await this.#saving;
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.save();
  }

  async #write(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    while (this.#dirty.size > 0) {
      const taken: [SavedSession, Dirty][] = [];
      const pending: PendingRecord[] = [];
      for (const [session, dirty] of this.#dirty) {
        this.#dirty.delete(session);
        taken.push([session, dirty]);
        if (session.isDurable) pending.push(...this.#toPending(session, dirty));
        if (pending.length >= RECORDS_MAX) break;
      }
      try {
        await this.#store.append(pending);
      } catch (error) {
        this.#putBack(taken);
        if (!this.#isClosed) this.#saveSoon(RETRY_MS);
        this.#onError(error);
        return;
      }
    }
  }

  #toPending(session: SavedSession, { cursors, packetIds }: Dirty): PendingRecord[] {
    const { id } = session;
    const pending: PendingRecord[] = [];
    for (const place of cursors) {
      const stored = session.storedCursor(place);
      if (stored !== undefined) pending.push(this.#records.cursor(id, place, stored));
    }
    for (const packetId of packetIds) {
      pending.push(this.#records.outgoing(id, packetId, session.storedOutgoing(packetId) ?? null));
    }
    return pending;
  }

  #putBack(taken: readonly [SavedSession, Dirty][]): void {
    for (const [session, { cursors, packetIds }] of taken) {
      const own = this.#of(session);
      for (const place of cursors) own.cursors.add(place);
      for (const packetId of packetIds) own.packetIds.add(packetId);
    }
  }

  #of(session: SavedSession): Dirty {
    let own = this.#dirty.get(session);
    if (own === undefined) {
      own = { cursors: new Set(), packetIds: new Set() };
      this.#dirty.set(session, own);
      this.#saveSoon(SAVE_MS);
    }
    return own;
  }

  #saveSoon(afterMs: number): void {
    this.#timer ??= setTimeout(() => void this.save(), afterMs);
  }
}
