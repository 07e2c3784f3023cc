// One stream of a topic for all tabs: browsers open six connections to a server over HTTP/1.1, for all tabs together. One tab
// reads and tells the others; when it ends, another continues from the last position.
import type { Connection } from "../connection.ts";
import { PulseClientError, type Problem } from "../errors.ts";
import { followEvents, type PlacedMessage } from "./event-subscription.ts";

const WAITING_MESSAGES_MAX = 1_000;

type Told =
  | { kind: "message"; placed: PlacedMessage }
  | { kind: "position"; position: string }
  | { kind: "ask" }
  | { kind: "refused"; problem: Problem };

/** Messages of a topic from now on. A program that takes them too slowly goes on with a stream of its own, and misses none. */
export async function* followShared(
  connection: Connection,
  scope: string,
  topic: string,
  signal: AbortSignal,
): AsyncGenerator<PlacedMessage, void> {
  const feed = new SharedFeed(connection, `${scope}:${topic}`, topic, signal);
  try {
    for await (const placed of feed.read()) yield placed;
    if (signal.aborted) return;
    const own = { topic, from: undefined, position: feed.taken };
    yield* followEvents(connection, own, signal);
  } finally {
    feed.close();
  }
}

class SharedFeed {
  readonly #channel: BroadcastChannel;
  readonly #closing = new AbortController();
  readonly #ended: AbortSignal;
  readonly #seen = new Map<string, number>();
  readonly #waiting: PlacedMessage[] = [];
  /** Position after the last message that any tab has told. */
  #heard: string | undefined;
  /** Position after the last message that this tab's program took. */
  taken: string | undefined;
  #isReader = false;
  #isBehind = false;
  #failure: unknown;
  #changed: () => void = () => undefined;

  constructor(connection: Connection, name: string, topic: string, signal: AbortSignal) {
    this.#channel = new BroadcastChannel(name);
    this.#channel.addEventListener("message", ({ data }: MessageEvent<Told>) => this.#hear(data));
    this.#tell({ kind: "ask" });
    const ended = AbortSignal.any([signal, this.#closing.signal]);
    this.#ended = ended;
    ended.addEventListener("abort", () => this.#changed());
    navigator.locks
      .request(name, { signal: ended }, () => this.#lead(connection, topic, ended))
      .catch((error: unknown) => {
        if (!ended.aborted) this.#fail(error);
      });
  }

  /** Ends when this tab is behind; throws if the broker refuses. */
  async *read(): AsyncGenerator<PlacedMessage, void> {
    for (;;) {
      const next = this.#waiting.shift();
      if (next !== undefined) {
        this.taken = next.position;
        yield next;
        continue;
      }
      if (this.#failure !== undefined) throw this.#failure;
      if (this.#isBehind || this.#ended.aborted) return;
      await new Promise<void>((resolve) => (this.#changed = resolve));
    }
  }

  close(): void {
    this.#closing.abort();
    this.#channel.close();
  }

  async #lead(connection: Connection, topic: string, signal: AbortSignal): Promise<void> {
    this.#isReader = true;
    const onOpen = (position: string | undefined): void => {
      if (position !== undefined) this.#hear({ kind: "position", position }, true);
    };
    const subscription = { topic, from: undefined, position: this.#heard, onOpen };
    try {
      for await (const placed of followEvents(connection, subscription, signal)) {
        this.#hear({ kind: "message", placed }, true);
      }
    } catch (error) {
      if (error instanceof PulseClientError && error.problem !== undefined) {
        this.#tell({ kind: "refused", problem: error.problem });
      }
      throw error;
    } finally {
      this.#isReader = false;
    }
  }

  #hear(told: Told, isOwn = false): void {
    if (isOwn) this.#tell(told);
    switch (told.kind) {
      case "message":
        this.#accept(told.placed);
        break;
      case "position":
        this.#heard ??= told.position;
        this.taken ??= told.position;
        break;
      case "ask":
        if (this.#isReader && this.#heard !== undefined) {
          this.#tell({ kind: "position", position: this.#heard });
        }
        break;
      case "refused":
        this.#fail(PulseClientError.of(told.problem));
        break;
      default:
        told satisfies never;
    }
  }

  // After a change of the reading tab, messages may be told twice.
  #accept(placed: PlacedMessage): void {
    const { topic, partition, offset } = placed.message;
    const place = `${topic}:${partition}`;
    if (offset <= (this.#seen.get(place) ?? -1)) return;
    this.#seen.set(place, offset);
    this.#heard = placed.position ?? this.#heard;
    if (this.#isBehind) return;
    if (this.#waiting.length < WAITING_MESSAGES_MAX) this.#waiting.push(placed);
    else this.#isBehind = true;
    this.#changed();
  }

  #fail(error: unknown): void {
    this.#failure ??= error;
    this.#changed();
  }

  #tell(told: Told): void {
    if (!this.#closing.signal.aborted) this.#channel.postMessage(told);
  }
}
