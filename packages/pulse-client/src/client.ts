// The client: its queue, its subscriptions and its events.
import { Connection } from "./connection.ts";
import { PulseClientError, type Problem } from "./errors.ts";
import {
  toWire,
  type OutgoingMessage,
  type QueuedMessage,
  type ReceivedMessage,
  type SentMessage,
} from "./message.ts";
import { IndexedOutbox } from "./queue/indexed-outbox.ts";
import { MemoryOutbox } from "./queue/memory-outbox.ts";
import type { Outbox, QueueLimits } from "./queue/outbox.ts";
import { Sender, type QueueState } from "./queue/sender.ts";
import { createTurn } from "./queue/turn.ts";
import { followEvents } from "./stream/event-subscription.ts";
import { followGroup } from "./stream/group-subscription.ts";
import { followShared } from "./stream/shared-events.ts";
import type { SubscribeOptions, Subscription } from "./stream/subscribe-options.ts";

const MESSAGES_MAX = 10_000;
const BYTES_MAX = 50 * 1024 * 1024;
const MESSAGE_BYTES_MAX = 1024 * 1024;
const AGE_MAX_MS = 7 * 24 * 60 * 60 * 1_000;
const TEXT_CHARS_MAX = 1_024;

/** Options of `createPulseClient`. */
export interface PulseClientOptions {
  /** Address of the broker, also relative to the page. */
  url: string;
  /**
   * Name of the signed-in user, such as the token's `sub`: each user of a browser has a queue of its own. Tokens whose `sub`
   * differs from that of the first one are not used for it.
   */
  user: string;
  /** Tells queues of one user apart; default `default`. */
  name?: string;
  /** Called for each request; without it the browser's cookies are sent. */
  token?: () => string | undefined | Promise<string | undefined>;
  /** Tenant that an administrator acts for. */
  tenant?: string;
  /** Messages in the queue, those set aside included; default 10 000. */
  messagesMax?: number;
  /** Bytes of the queue; default 50 MiB. */
  bytesMax?: number;
  /** Bytes of a message as JSON; default 1 MiB. */
  messageBytesMax?: number;
  /** Default `refuse`: `publish` rejects with `queue_full`. */
  whenFull?: QueueLimits["whenFull"];
  /**
   * Messages that wait longer are set aside as `expired`, in ms; default 7 days. The broker knows a queue that it heard from
   * among its last 100 000 producers; beyond that a repeated message may be stored twice.
   */
  ageMaxMs?: number;
}

/** A message that is in the queue. */
export interface Publication {
  message_id: string;
  state: "queued";
  /**
   * The broker's acknowledgement. Rejects with the broker's refusal, `expired`, `discarded`, `cleared` or `dropped`, and with
   * `closed` for a message that is still queued and will be sent by the next client of this queue.
   */
  sent: Promise<SentMessage>;
}

/** A message of the queue as `pending` lists it. */
export interface PendingMessage {
  message_id: string;
  topic: string;
  /** Epoch ms by the clock of this machine. */
  queued_at: number;
  bytes: number;
  state: "queued" | "rejected";
  problem?: Problem;
}

/** Events of a client and what their listeners get; `sent`, `rejected` and `state` tell of all tabs. */
export interface PulseClientEvents {
  state: QueueState;
  sent: SentMessage;
  rejected: { message_id: string; problem: Problem };
  /** The browser's storage failed; the queue goes on when it works again. */
  error: unknown;
}

type Told =
  | { kind: "sent"; messages: SentMessage[] }
  | { kind: "rejected"; message_id: string; problem: Problem }
  | { kind: "gone"; message_ids: string[] | undefined; code: string }
  | { kind: "state"; state: QueueState };

type Listeners = { [K in keyof PulseClientEvents]: Set<(event: PulseClientEvents[K]) => void> };

/** Opens the queue of this user, in memory if the browser allows no other, and sends what waits in it. */
export async function createPulseClient(options: PulseClientOptions): Promise<PulseClient> {
  const { user, name = "default" } = options;
  for (const [field, text] of Object.entries({ user, name })) {
    if (typeof text !== "string" || text === "" || text.length > TEXT_CHARS_MAX) {
      throw new TypeError(`${field} must be a text of 1 to ${TEXT_CHARS_MAX} characters.`);
    }
  }
  const connection = new Connection(options);
  // The names themselves, not a hash of them: two users never meet in one queue.
  const scope = `platform-pulse:${JSON.stringify([connection.base, options.tenant, user, name])}`;
  const outbox: Outbox = await IndexedOutbox.open(scope).catch(() => new MemoryOutbox());
  return new PulseClient(options, connection, outbox, scope);
}

/** See `createPulseClient`. */
export class PulseClient {
  readonly #limits: QueueLimits & { messageBytesMax: number };
  readonly #connection: Connection;
  readonly #outbox: Outbox;
  readonly #scope: string;
  readonly #sender: Sender;
  readonly #channel: BroadcastChannel;
  readonly #closing = new AbortController();
  readonly #waiting = new Map<string, PromiseWithResolvers<SentMessage>>();
  readonly #listeners: Listeners = {
    state: new Set(),
    sent: new Set(),
    rejected: new Set(),
    error: new Set(),
  };
  #state: QueueState = "idle";

  /** Use `createPulseClient`. */
  constructor(options: PulseClientOptions, connection: Connection, outbox: Outbox, scope: string) {
    this.#limits = {
      messagesMax: options.messagesMax ?? MESSAGES_MAX,
      bytesMax: options.bytesMax ?? BYTES_MAX,
      messageBytesMax: options.messageBytesMax ?? MESSAGE_BYTES_MAX,
      whenFull: options.whenFull ?? "refuse",
    };
    this.#connection = connection;
    this.#outbox = outbox;
    this.#scope = scope;
    // Queues in memory are of one tab each, though their names are equal.
    this.#channel = new BroadcastChannel(outbox.isDurable ? scope : `${scope}:${Math.random()}`);
    this.#channel.addEventListener("message", ({ data }: MessageEvent<Told>) => this.#hear(data));
    this.#sender = new Sender({
      outbox,
      connection,
      turn: createTurn(scope, outbox),
      ageMaxMs: options.ageMaxMs ?? AGE_MAX_MS,
      onState: (state) => {
        if (state !== this.#state) this.#tell({ kind: "state", state });
      },
      onSent: (messages) => this.#tell({ kind: "sent", messages }),
      onRejected: ({ message: { message_id } }, problem) =>
        this.#tell({ kind: "rejected", message_id, problem }),
      onError: (error) => this.#emit("error", error),
    });
    const { signal } = this.#closing;
    globalThis.addEventListener("online", () => this.#sender.wake(), { signal });
    globalThis.document?.addEventListener("visibilitychange", () => this.#wakeIfVisible(), {
      signal,
    });
    this.#sender.start();
  }

  /** False if the queue ends with the page, because the browser allows no storage. */
  get durable(): boolean {
    return this.#outbox.isDurable;
  }

  /** Of the tab that sends. */
  get state(): QueueState {
    return this.#state;
  }

  /**
   * Resolves when the message is stored in the browser; messages of a page are sent in the order of these calls. Rejects
   * with `queue_full`, `message_too_large` or `closed`.
   */
  async publish(outgoing: OutgoingMessage): Promise<Publication> {
    this.#checkOpen();
    const { message, bytes } = toWire(outgoing, this.#limits.messageBytesMax);
    const { message_id } = message;
    const sent = this.#waiting.get(message_id) ?? Promise.withResolvers<SentMessage>();
    // Programs need not look at it.
    sent.promise.catch(() => undefined);
    this.#waiting.set(message_id, sent);
    try {
      const record = { message, bytes, queuedAtMs: Date.now() };
      const { dropped } = await this.#outbox.add(record, this.#limits);
      if (dropped.length > 0) this.#gone("dropped", dropped);
    } catch (error) {
      this.#waiting.delete(message_id);
      throw error;
    }
    this.#sender.start();
    return { message_id, state: "queued", sent: sent.promise };
  }

  /**
   * Messages of a topic or pattern, or this member's share of a group's. A lost connection is opened again and goes on where
   * it was. Tabs share a stream of `latest` messages without `resume`.
   */
  subscribe(topic: string, options: SubscribeOptions = {}): Subscription {
    this.#checkOpen();
    const stopping = new AbortController();
    const signals = [this.#closing.signal, stopping.signal];
    if (options.signal !== undefined) signals.push(options.signal);
    const messages = this.#follow(topic, options, AbortSignal.any(signals));
    return {
      next: () => messages.next(),
      return: async () => {
        // A generator that waits for the network would end only with its next message.
        stopping.abort();
        await messages.return(undefined);
        return { done: true, value: undefined };
      },
      [Symbol.asyncIterator]() {
        return this;
      },
    };
  }

  /** The messages of the queue, of all tabs, oldest first; those set aside last. */
  async pending(): Promise<PendingMessage[]> {
    this.#checkOpen();
    return (await this.#outbox.list()).map(({ message, bytes, queuedAtMs, problem }) => ({
      message_id: message.message_id,
      topic: message.topic,
      queued_at: queuedAtMs,
      bytes,
      ...(problem === undefined
        ? { state: "queued" as const }
        : { state: "rejected" as const, problem }),
    }));
  }

  /**
   * Puts messages that were set aside at the end of the queue, all or one, and sends now instead of after the pause. Resolves
   * to the number of messages that were set aside.
   */
  async retry(messageId?: string): Promise<number> {
    this.#checkOpen();
    const count = await this.#outbox.retry(messageId);
    this.#sender.wake();
    return count;
  }

  /** Removes a message; false if the queue has none with this id. One that is just being sent may still arrive. */
  async discard(messageId: string): Promise<boolean> {
    this.#checkOpen();
    const isFound = await this.#outbox.discard(messageId);
    if (isFound) this.#tell({ kind: "gone", message_ids: [messageId], code: "discarded" });
    return isFound;
  }

  /**
   * Removes all messages and positions of this queue: for the end of a session. Nothing of it is sent afterwards; what is on its
   * way may still arrive.
   */
  async clear(): Promise<void> {
    this.#checkOpen();
    await this.#outbox.clear();
    this.#tell({ kind: "gone", message_ids: undefined, code: "cleared" });
  }

  /** Ends subscriptions and sending by this client; what is queued stays. */
  close(): void {
    if (this.#closing.signal.aborted) return;
    this.#closing.abort();
    this.#sender.close();
    this.#channel.close();
    this.#outbox.close();
    this.#settleAll(
      new PulseClientError("closed", "The client was closed; the message is queued."),
    );
  }

  /** Calls the listener for each event; the returned function stops that. */
  on<K extends keyof PulseClientEvents>(
    event: K,
    listener: (value: PulseClientEvents[K]) => void,
  ): () => void {
    const set: Set<(value: PulseClientEvents[K]) => void> = this.#listeners[event];
    set.add(listener);
    return () => void set.delete(listener);
  }

  async *#follow(
    topic: string,
    options: SubscribeOptions,
    signal: AbortSignal,
  ): AsyncGenerator<ReceivedMessage, void> {
    const { group, from, resume } = options;
    if (group !== undefined) {
      yield* followGroup(this.#connection, topic, { ...options, group }, signal);
      return;
    }
    if (from === undefined && resume === undefined && "locks" in navigator) {
      const shared = followShared(this.#connection, `${this.#scope}:events`, topic, signal);
      for await (const { message } of shared) yield message;
      return;
    }
    const position = resume === undefined ? undefined : await this.#outbox.readCursor(resume);
    const subscription = { topic, from: from?.toString(), position };
    let saved = Promise.resolve();
    for await (const placed of followEvents(this.#connection, subscription, signal)) {
      yield placed.message;
      // The one before may still be stored: positions are in the order of messages.
      if (resume === undefined || placed.position === undefined) continue;
      const position = placed.position;
      await saved;
      saved = this.#outbox
        .writeCursor(resume, position)
        .catch((error: unknown) => this.#emit("error", error));
    }
    await saved;
  }

  #wakeIfVisible(): void {
    if (document.visibilityState === "visible") this.#sender.wake();
  }

  #gone(code: string, messages: readonly QueuedMessage[]): void {
    const message_ids = messages.map(({ message }) => message.message_id);
    this.#tell({ kind: "gone", message_ids, code });
  }

  /** To the other tabs of this queue and to this one. */
  #tell(told: Told): void {
    if (this.#closing.signal.aborted) return;
    this.#channel.postMessage(told);
    this.#hear(told);
  }

  #hear(told: Told): void {
    switch (told.kind) {
      case "sent":
        for (const message of told.messages) {
          this.#settle(message.message_id)?.resolve(message);
          this.#emit("sent", message);
        }
        break;
      case "rejected": {
        const { message_id, problem } = told;
        this.#settle(message_id)?.reject(PulseClientError.of(problem));
        this.#emit("rejected", { message_id, problem });
        break;
      }
      case "gone": {
        const error = new PulseClientError(told.code, `The message was ${told.code}.`);
        if (told.message_ids === undefined) {
          this.#sender.cancel();
          this.#settleAll(error);
        }
        for (const id of told.message_ids ?? []) this.#settle(id)?.reject(error);
        break;
      }
      case "state":
        this.#state = told.state;
        this.#emit("state", told.state);
        break;
      default:
        told satisfies never;
    }
  }

  #settle(messageId: string): PromiseWithResolvers<SentMessage> | undefined {
    const waiting = this.#waiting.get(messageId);
    this.#waiting.delete(messageId);
    return waiting;
  }

  #settleAll(error: PulseClientError): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }

  #emit<K extends keyof PulseClientEvents>(event: K, value: PulseClientEvents[K]): void {
    for (const listener of this.#listeners[event]) {
      try {
        listener(value);
      } catch (error) {
        // A listener's own fault: it must not stop the queue.
        reportError(error);
      }
    }
  }

  #checkOpen(): void {
    if (this.#closing.signal.aborted) throw new PulseClientError("closed", "The client is closed.");
  }
}
