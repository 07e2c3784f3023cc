// Sends the queue, oldest first, one batch in flight. A batch is atomic at the broker, and each message has the number of its
// place: a batch that is sent again is dropped there if it had arrived.
import { Backoff, Pause } from "../backoff.ts";
import { readProblem, readRetryAfter, readSubject, type Connection } from "../connection.ts";
import type { Problem } from "../errors.ts";
import type { QueuedMessage, SentMessage } from "../message.ts";
import type { Outbox } from "./outbox.ts";
import type { Turn } from "./turn.ts";

const BATCH_MESSAGES_MAX = 100;
const BATCH_BYTES_MAX = 1024 * 1024;
const REQUEST_MS_MAX = 30_000;
const RETRY_MS_MIN = 1_000;
const RETRY_MS_MAX = 300_000;
const TOKEN_MS = 30_000;
/** Answers about the message itself; others are about the network, a proxy or the broker's state. */
const REFUSALS: readonly number[] = [400, 403, 409, 413, 422];

/**
 * State of the queue: `sending`, `waiting` for the next attempt, or `auth`: the token function gave no token, the one that
 * was refused, or one of another user.
 */
export type QueueState = "idle" | "sending" | "waiting" | "auth";

/** Options of `Sender`. */
export interface SenderOptions {
  outbox: Outbox;
  connection: Connection;
  turn: Turn;
  /** Messages that wait longer are set aside as `expired`, in ms. */
  ageMaxMs: number;
  onState: (state: QueueState) => void;
  onSent: (messages: SentMessage[]) => void;
  onRejected: (message: QueuedMessage, problem: Problem) => void;
  /** The browser's storage failed. */
  onError: (error: unknown) => void;
}

type Attempt =
  | { kind: "sent"; results: SentMessage[] }
  | { kind: "refused"; problem: Problem }
  | { kind: "unauthorized" }
  | { kind: "failed"; retryAfterMs: number };

export class Sender {
  readonly #options: SenderOptions;
  readonly #backoff = new Backoff(RETRY_MS_MIN, RETRY_MS_MAX);
  readonly #pause = new Pause();
  readonly #closing = new AbortController();
  /** Of the messages that were read last. */
  #attempt = new AbortController();
  #isRunning = false;
  #messagesMax = BATCH_MESSAGES_MAX;
  /** Messages that are still to be sent one by one, to find one that the broker refuses. */
  #alone = 0;

  constructor(options: SenderOptions) {
    this.#options = options;
  }

  /** Sends what waits, now or as soon as no other tab does. Ends a pause between attempts. */
  wake(): void {
    this.#pause.wake();
    this.start();
  }

  /** As `wake`, but a pause goes on. */
  start(): void {
    if (this.#isRunning || this.#closing.signal.aborted) return;
    this.#isRunning = true;
    void this.#run();
  }

  /** Lets go of the messages that were read from the queue: they are no longer in it. */
  cancel(): void {
    this.#attempt.abort();
  }

  close(): void {
    this.#closing.abort();
  }

  async #run(): Promise<void> {
    const { turn, onError, onState, outbox } = this.#options;
    const { signal } = this.#closing;
    try {
      let isAuthorized = true;
      await turn(async (held) => {
        isAuthorized = await this.#drain(held);
      }, signal);
      onState(isAuthorized ? "idle" : "auth");
      // Another tab may have a better token: this one waits without its turn.
      if (!isAuthorized) await this.#pause.wait(TOKEN_MS, signal);
    } catch (error) {
      if (signal.aborted) return;
      onError(error);
      await this.#pause.wait(this.#backoff.next(), signal);
    }
    this.#isRunning = false;
    if (signal.aborted) return;
    // A message may have been added while the turn ended, and its `start` found this one running.
    const left = await outbox.head(1, 0).catch(() => undefined);
    if (left?.messages.length !== 0) this.start();
  }

  /** Sends until nothing waits or the turn is lost; false if there is no usable token. */
  async #drain(signal: AbortSignal): Promise<boolean> {
    const { outbox, connection, onState } = this.#options;
    while (!signal.aborted) {
      const attempted = (this.#attempt = new AbortController()).signal;
      const messagesMax = this.#alone > 0 ? 1 : this.#messagesMax;
      const head = await outbox.head(messagesMax, BATCH_BYTES_MAX);
      if (head.messages.length === 0) return true;
      if (await this.#expire(head.messages[0]!)) continue;
      const credential = await connection.credential();
      if (credential.kind === "unusable") return false;
      const { token } = credential;
      const subject = readSubject(token);
      if (subject !== undefined && head.subject === undefined) await outbox.setSubject(subject);
      else if (subject !== undefined && head.subject !== subject) return false;
      // A token may take seconds, and the queue was cleared meanwhile.
      if (attempted.aborted) continue;
      onState("sending");
      const attempt = await this.#send(head, token, AbortSignal.any([signal, attempted]));
      if (signal.aborted) return true;
      if (attempted.aborted) continue;
      if (attempt.kind === "unauthorized") {
        connection.refuse(token);
        if (token === undefined) return false;
      } else if (attempt.kind === "failed") {
        onState("waiting");
        await this.#pause.wait(this.#backoff.next(), signal, attempt.retryAfterMs);
      } else if (attempt.kind === "refused") {
        await this.#handleRefusal(head.messages, attempt.problem);
      } else {
        this.#backoff.reset();
        this.#messagesMax = BATCH_MESSAGES_MAX;
        this.#alone = Math.max(this.#alone - 1, 0);
        // Told before they are removed: a page that ends in between sends them again, and tells then.
        this.#options.onSent(attempt.results);
        await outbox.settle(head.messages.map(({ key }) => key));
      }
    }
    return true;
  }

  // The messages before the refused one are sent first; then it is the first, and set aside.
  async #handleRefusal(messages: readonly QueuedMessage[], problem: Problem): Promise<void> {
    const { index } = problem;
    if (messages.length === 1 || index === 0) {
      this.#alone = Math.max(this.#alone - 1, 0);
      await this.#setAside(messages[0]!, problem);
    } else if (index === undefined || index >= messages.length) {
      // It may be any of them: each is sent by itself.
      this.#alone = messages.length;
    } else this.#messagesMax = index;
  }

  async #send(
    { producerId, messages }: { producerId: string; messages: readonly QueuedMessage[] },
    token: string | undefined,
    signal: AbortSignal,
  ): Promise<Attempt> {
    const { connection } = this.#options;
    try {
      const response = await connection.fetch(connection.address("/api/v1/publish/batch"), token, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({
          messages: messages.map(({ key, message }) => ({
            ...message,
            producer_id: producerId,
            sequence_number: key,
          })),
        }),
        signal: AbortSignal.any([signal, AbortSignal.timeout(REQUEST_MS_MAX)]),
      });
      if (response.ok) {
        const { results } = (await response.json()) as { results: Partial<SentMessage>[] };
        // A proxy's own page is no acknowledgement.
        const isOurs = messages.every(
          ({ message }, index) => results[index]?.message_id === message.message_id,
        );
        if (isOurs) return { kind: "sent", results: results.map(toSent) };
      }
      if (response.status === 401) return { kind: "unauthorized" };
      const retryAfterMs = Math.min(readRetryAfter(response), RETRY_MS_MAX);
      const problem = REFUSALS.includes(response.status) ? await readProblem(response) : undefined;
      return problem === undefined
        ? { kind: "failed", retryAfterMs }
        : { kind: "refused", problem };
    } catch {
      return { kind: "failed", retryAfterMs: 0 };
    }
  }

  async #expire(first: QueuedMessage): Promise<boolean> {
    const ageMs = Date.now() - first.queuedAtMs;
    if (ageMs <= this.#options.ageMaxMs) return false;
    await this.#setAside(first, {
      code: "expired",
      detail: `The message waited for ${Math.round(ageMs / 1_000)} s.`,
    });
    return true;
  }

  async #setAside(message: QueuedMessage, problem: Problem): Promise<void> {
    await this.#options.outbox.reject(message.key, problem);
    this.#options.onRejected(message, problem);
  }
}

function toSent(result: Partial<SentMessage>): SentMessage {
  const { message_id, topic, partition, offset, duplicate, scheduled_for } = result;
  return {
    message_id: message_id!,
    topic: topic!,
    ...(partition === undefined ? {} : { partition }),
    ...(offset === undefined ? {} : { offset }),
    duplicate: duplicate === true,
    ...(scheduled_for === undefined ? {} : { scheduled_for }),
    ...(result.routed_to === undefined ? {} : { routed_to: result.routed_to }),
    ...(result.failure_reason === undefined ? {} : { failure_reason: result.failure_reason }),
  };
}
