// Requests of one connection take effect in the order of their arrival, though several are handled at the same time.
import {
  apiVersions,
  describeAcls,
  describeCluster,
  describeConfigs,
  describeGroups,
  fetch,
  findCoordinator,
  heartbeat,
  joinGroup,
  leaveGroup,
  listGroups,
  listOffsets,
  offsetCommit,
  offsetFetch,
  offsetForLeaderEpoch,
  produce,
  saslAuthenticate,
  saslHandshake,
  syncGroup,
} from "../protocol/messages/index.ts";

/** When a request is handled. */
export interface RequestOrder {
  /** It waits until earlier changes have ended. */
  followsChanges: boolean;
  /** Later requests that follow changes wait for it. */
  isChange: boolean;
  /**
   * It waits until all earlier answers are written and until there is room for its own, which may be much larger than the
   * request.
   */
  takesTurn: boolean;
}

/**
 * Requests that are handled on arrival: their answers are small or, for JoinGroup and SyncGroup, refer to existing data.
 * Fetch waits for its turn and for room itself.
 */
const PROMPT = [
  apiVersions,
  fetch,
  heartbeat,
  joinGroup,
  leaveGroup,
  saslAuthenticate,
  saslHandshake,
  syncGroup,
];
const READING = [
  describeAcls,
  describeCluster,
  describeConfigs,
  describeGroups,
  findCoordinator,
  listGroups,
  listOffsets,
  offsetFetch,
  offsetForLeaderEpoch,
];

const CHANGING: RequestOrder = { followsChanges: true, isChange: true, takesTurn: true };
const ORDERS: ReadonlyMap<number, RequestOrder> = new Map([
  ...PROMPT.map(({ key }): [number, RequestOrder] => [
    key,
    { followsChanges: false, isChange: false, takesTurn: false },
  ]),
  ...READING.map(({ key }): [number, RequestOrder] => [
    key,
    { followsChanges: false, isChange: false, takesTurn: true },
  ]),
  // The log keeps the order of the batches that are being written.
  [produce.key, { followsChanges: true, isChange: false, takesTurn: false }],
  [offsetCommit.key, { followsChanges: true, isChange: true, takesTurn: false }],
]);

/** The order of requests with an API key. */
export function orderOf(apiKey: number): RequestOrder {
  return ORDERS.get(apiKey) ?? CHANGING;
}

/** The changes of one connection that have not ended. */
export class PendingChanges {
  #last: Promise<void> | undefined;

  /** Resolves when all earlier changes have ended; undefined if they have. */
  follow(): Promise<void> | undefined {
    if (this.#last === undefined) return undefined;
    return this.#append(this.#last.then(() => undefined));
  }

  /** Adds a change; the returned function ends it. */
  begin(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    void this.#append(promise);
    return resolve;
  }

  // A request that arrives when the last change ends comes behind all those that wait for the same.
  #append(last: Promise<void>): Promise<void> {
    this.#last = last;
    void last.then(() => {
      if (this.#last === last) this.#last = undefined;
    });
    return last;
  }
}
