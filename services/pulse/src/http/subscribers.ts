// The open SSE and WebSocket subscribers: their limit, keep-alives, and disconnection of slow ones.
import { createRetryLaterError } from "@platform/kernel/errors";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import {
  findSessionEnd,
  toRevocable,
  type Caller,
  type TokenStreams,
} from "@platform/kernel/identity";
import {
  describeClient,
  type ConnectedClient,
  type ListedConnection,
} from "../connection/listed-connection.ts";
import { UserConnections } from "../connection/user-connections.ts";
import type { Tenant } from "../topic/name.ts";
import type { Principal } from "../user/principal.ts";
import { tenantOf } from "./admission.ts";

/** Cause of the end of a stream: the client may connect again, or it has lost its token, session or right. */
type DropCause = "going-away" | "revoked";

/** One open stream. */
export interface SubscriberStream {
  readonly transport: "sse" | "websocket";
  readonly remoteAddress: string;
  /** True if data waits for the connection. */
  isStalled: () => boolean;
  /** Sends a keep-alive. */
  ping: () => void;
  /** Ends it, with the reason if that can still be sent. */
  drop: (reason: string, cause?: DropCause) => void;
}

const PING_MS = 15_000;
const SWEEP_MS = 1_000;

/** Options of `Subscribers`. */
export interface SubscribersOptions {
  subscribersMax: number;
  /** Maximum per user; the operator is one. */
  perUserMax: number;
  /** Subscribers that read nothing for this time are disconnected, in ms. */
  stallTimeoutMs: number;
  /** Called for each subscriber that was disconnected because it read nothing. */
  onDropped: (tenant: Tenant) => void;
  /** Ends the streams of revoked tokens. */
  tokenStreams: TokenStreams;
  onError: (error: unknown) => void;
}

interface StreamState {
  tenant: Tenant;
  principal: ReturnType<typeof toPrincipal>;
  /** A topic or a pattern; undefined for statistics. */
  subscription: string | undefined;
  number: number;
  openedAtMs: number;
  stalledSinceMs: number | undefined;
  pingAtMs: number;
  /** False when the caller has lost the right that the stream needs. */
  isAllowed: () => boolean;
  /** End of the caller's session in seconds since 1970. */
  sessionEnd: number;
  /** Removes the stream from those that end when their token is revoked. */
  forget: () => void;
}

/** The open streams of the HTTP listener. */
export class Subscribers {
  readonly #options: SubscribersOptions;
  readonly #users: UserConnections;
  readonly #streams = new Map<SubscriberStream, StreamState>();
  #admitted = 0;
  #lastNumber = 0;
  #timer: RepeatingTimer | undefined;
  /** Number of subscribers disconnected because they read nothing. */
  dropped = 0;

  constructor(options: SubscribersOptions) {
    this.#options = options;
    this.#users = new UserConnections(options.perUserMax);
  }

  get count(): number {
    return this.#streams.size;
  }

  /**
   * Counts a connection of this caller until the returned function is called. Throws `overloaded` at the limit of all
   * subscribers and `too_many_requests` at that of the user.
   */
  admit(caller: Caller): () => void {
    if (this.#admitted >= this.#options.subscribersMax) {
      throw createRetryLaterError("overloaded", "The limit of subscribers is reached.", 5);
    }
    const release = this.#users.admit(toPrincipal(caller));
    if (release === undefined) {
      throw createRetryLaterError("too_many_requests", "The user has too many subscribers.", 5);
    }
    this.#admitted++;
    return () => {
      this.#admitted--;
      release();
    };
  }

  /**
   * Adds a stream of a topic or pattern, which is dropped when its caller's token is revoked or its session ends, and by
   * `endForbidden` when `isAllowed` returns false.
   */
  add(
    stream: SubscriberStream,
    caller: Caller,
    isAllowed: () => boolean,
    subscription?: string,
  ): void {
    this.#lastNumber++;
    const tenant = tenantOf(caller);
    const state: StreamState = {
      tenant,
      principal: { ...toPrincipal(caller), tenant },
      subscription,
      number: this.#lastNumber,
      openedAtMs: Date.now(),
      isAllowed,
      stalledSinceMs: undefined,
      pingAtMs: performance.now() + PING_MS,
      sessionEnd: (caller.kind === "user" ? findSessionEnd(caller.claims) : undefined) ?? Infinity,
      forget: () => undefined,
    };
    this.#streams.set(stream, state);
    this.#timer ??= every(SWEEP_MS, () => this.#sweep(), this.#options.onError);
    if (caller.kind !== "user") return;
    state.forget = this.#options.tokenStreams.add(toRevocable(caller.claims), () =>
      stream.drop("the token was revoked", "revoked"),
    );
    // The rules may have changed while the subscription was opened.
    if (!isAllowed()) this.#end(stream);
  }

  remove(stream: SubscriberStream): void {
    this.#streams.get(stream)?.forget();
    this.#streams.delete(stream);
    if (this.#streams.size > 0) return;
    void this.#timer?.stop();
    this.#timer = undefined;
  }

  /** The streams after this number, in the order in which they were opened. */
  *list(after: number): Generator<ListedConnection> {
    for (const [{ transport, remoteAddress }, state] of this.#streams) {
      const { number, openedAtMs } = state;
      if (number <= after) continue;
      yield { number, transport, remoteAddress, openedAtMs, client: describe(state) };
    }
  }

  /** Ends the streams whose callers have lost their right, after a change of the topic rules. */
  endForbidden(): void {
    for (const [stream, { isAllowed }] of this.#streams) {
      if (!isAllowed()) this.#end(stream);
    }
  }

  /** Ends all streams. */
  close(reason: string): void {
    for (const stream of this.#streams.keys()) stream.drop(reason);
    void this.#timer?.stop();
  }

  #end(stream: SubscriberStream): void {
    stream.drop("the right to subscribe was withdrawn", "revoked");
  }

  #sweep(): void {
    const now = performance.now();
    const nowSeconds = Date.now() / 1_000;
    for (const [stream, state] of this.#streams) {
      if (nowSeconds >= state.sessionEnd) {
        stream.drop("the session has ended", "revoked");
      } else if (!stream.isStalled()) {
        state.stalledSinceMs = undefined;
        if (now < state.pingAtMs) continue;
        state.pingAtMs = now + PING_MS;
        stream.ping();
      } else {
        state.stalledSinceMs ??= now;
        if (now - state.stalledSinceMs < this.#options.stallTimeoutMs) continue;
        this.dropped++;
        this.#options.onDropped(state.tenant);
        stream.drop("too slow: nothing was taken for too long");
      }
    }
  }
}

function describe({ principal, subscription }: StreamState): ConnectedClient {
  const names = subscription === undefined ? [] : [subscription];
  return describeClient(principal, undefined, names.values(), names.length);
}

/** The user whose subscriptions a caller's count with; the operator is one. */
export function toPrincipal(caller: Caller): Pick<Principal, "tenant" | "name" | "token"> {
  if (caller.kind !== "user") return { tenant: "", name: caller.kind };
  const { tenant = "", sub = "" } = caller.claims;
  return { tenant, name: sub, token: toRevocable(caller.claims) };
}
