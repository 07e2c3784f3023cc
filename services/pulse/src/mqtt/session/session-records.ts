// The durable form of sessions: records of the state table, each under the id of its session.
import type { StoredRanges } from "../../store/offset-ranges.ts";
import { readJson, type StateEntry, type StateTable } from "../../store/state.ts";
import type { PendingRecord } from "../../store/store.ts";
import type { Qos } from "../packet/packets.ts";
import type { Properties } from "../packet/properties.ts";

/*
 *     mqtt-session       id                       StoredSession
 *     mqtt-will          id                       StoredWill
 *     mqtt-subscription  id filter                StoredSubscription
 *     mqtt-cursor        id topic-id partition    StoredRanges: what the client has acknowledged
 *     mqtt-incoming      id packet-id             1: a QoS 2 message was stored and not yet released
 *     mqtt-outgoing      id packet-id             StoredOutgoing: a message was sent and not yet acknowledged
 */

export interface StoredSession {
  tenant: string;
  owner: string;
  clientId: string;
  expirySeconds: number;
  /** Epoch ms; absent while the client is connected. */
  disconnectedAt?: number;
}

/** The options of a subscription. */
export interface StoredSubscription {
  qos: Qos;
  noLocal: boolean;
  retainAsPublished: boolean;
  /** Subscription identifier. */
  id?: number;
}

/** A message in flight to the client. */
export interface StoredOutgoing {
  phase: "publish" | "release";
  qos: Qos;
  topicId: string;
  partition: number;
  offset: number;
  retain: boolean;
  ids: readonly number[];
}

/** A will. Bytes are in base64. */
export interface StoredWill {
  topic: string;
  payload: string;
  qos: Qos;
  retain: boolean;
  properties: Omit<Properties, "correlationData"> & { correlationData?: string };
}

const KINDS = ["session", "will", "subscription", "cursor", "incoming", "outgoing"] as const;
type Kind = (typeof KINDS)[number];

/** All records of a session as loaded at startup. */
export interface LoadedSession {
  id: string;
  session: StoredSession;
  will: StoredWill | undefined;
  subscriptions: [filter: string, options: StoredSubscription][];
  /** By `<topic id>:<partition>`. */
  cursors: Map<string, StoredRanges>;
  incoming: number[];
  outgoing: [packetId: number, message: StoredOutgoing][];
}

/** Reads and builds the records of sessions. */
export class SessionRecords {
  readonly #state: StateTable;

  constructor(state: StateTable) {
    this.#state = state;
  }

  /** Takes all sessions from the state. Records without a session are returned as `orphans`, to be deleted. */
  load(): { sessions: LoadedSession[]; orphans: PendingRecord[] } {
    const sessions = new Map<string, LoadedSession>();
    for (const { key, value } of this.#take("session")) {
      const id = String(key[1]);
      sessions.set(id, createLoaded(id, readJson(value) as StoredSession));
    }
    const orphans: PendingRecord[] = [];
    for (const kind of KINDS) {
      if (kind === "session") continue;
      for (const { key, value } of this.#take(kind)) {
        const loaded = sessions.get(String(key[1]));
        if (loaded === undefined) orphans.push(this.#state.toPending(key, null));
        else addLoaded(loaded, kind, key.slice(2), readJson(value));
      }
    }
    return { sessions: [...sessions.values()], orphans };
  }

  session(id: string, value: StoredSession | null): PendingRecord {
    return this.#toPending("session", [id], value);
  }

  will(id: string, value: StoredWill | null): PendingRecord {
    return this.#toPending("will", [id], value);
  }

  subscription(id: string, filter: string, value: StoredSubscription | null): PendingRecord {
    return this.#toPending("subscription", [id, filter], value);
  }

  cursor(id: string, place: string, value: StoredRanges | null): PendingRecord {
    const [topicId, partition] = place.split(":");
    return this.#toPending("cursor", [id, topicId!, Number(partition)], value);
  }

  incoming(id: string, packetId: number, isStored: boolean): PendingRecord {
    return this.#toPending("incoming", [id, packetId], isStored ? 1 : null);
  }

  outgoing(id: string, packetId: number, value: StoredOutgoing | null): PendingRecord {
    return this.#toPending("outgoing", [id, packetId], value);
  }

  #toPending(kind: Kind, about: (string | number)[], value: unknown): PendingRecord {
    const key = [`mqtt-${kind}`, ...about] as const;
    return value === null
      ? this.#state.toPending(key, null)
      : this.#state.toPendingJson(key, value);
  }

  #take(kind: Kind): StateEntry[] {
    return this.#state.take(`mqtt-${kind}`);
  }
}

function createLoaded(id: string, session: StoredSession): LoadedSession {
  return {
    id,
    session,
    will: undefined,
    subscriptions: [],
    cursors: new Map(),
    incoming: [],
    outgoing: [],
  };
}

function addLoaded(
  loaded: LoadedSession,
  kind: Exclude<Kind, "session">,
  about: readonly (string | number)[],
  value: unknown,
): void {
  switch (kind) {
    case "will":
      loaded.will = value as StoredWill;
      return;
    case "subscription":
      loaded.subscriptions.push([String(about[0]), value as StoredSubscription]);
      return;
    case "cursor":
      loaded.cursors.set(`${about[0]}:${about[1]}`, value as StoredRanges);
      return;
    case "incoming":
      loaded.incoming.push(Number(about[0]));
      return;
    case "outgoing":
      loaded.outgoing.push([Number(about[0]), value as StoredOutgoing]);
      return;
    default:
      kind satisfies never;
  }
}
