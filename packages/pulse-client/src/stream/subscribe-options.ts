// Options of subscriptions, and how a failed attempt goes on.
import { Pause, type Backoff } from "../backoff.ts";
import { readProblem, readRetryAfter, type Connection } from "../connection.ts";
import { PulseClientError } from "../errors.ts";
import type { ReceivedMessage } from "../message.ts";

/** Options of `subscribe`; all may be left out. */
export interface SubscribeOptions {
  /** `latest` (default), `earliest` or an offset, where there is no position to resume from. */
  from?: "earliest" | "latest" | number;
  /** Name under which this queue keeps the position; it moves on when the next message is asked for. */
  resume?: string;
  /** Shares the topic's messages with the members of the group; acknowledged when the next message is asked for. */
  group?: string;
  /** Unacknowledged messages that the broker sends ahead to a member; default 100. */
  prefetch?: number;
  signal?: AbortSignal;
}

/** Messages until `return` is called, the signal is aborted or the broker refuses; then it throws the refusal. */
export type Subscription = AsyncIterableIterator<ReceivedMessage, void, undefined>;

/** A token that the broker refused is asked for again after this time, in ms. */
const TOKEN_MS = 30_000;
const REFUSALS: readonly number[] = [400, 403, 404, 422];

/** Opens streams, again and again. */
export class Attempts {
  readonly #connection: Connection;
  readonly #backoff: Backoff;
  readonly #pause = new Pause();
  readonly #signal: AbortSignal;

  constructor(connection: Connection, backoff: Backoff, signal: AbortSignal) {
    this.#connection = connection;
    this.#backoff = backoff;
    this.#signal = signal;
  }

  /** Waits until the token function gives a usable token; undefined where there is no such function. */
  async token(): Promise<string | undefined> {
    for (;;) {
      const credential = await this.#connection.credential();
      this.#signal.throwIfAborted();
      if (credential.kind === "ready") return credential.token;
      await this.#pause.wait(TOKEN_MS, this.#signal);
      this.#signal.throwIfAborted();
    }
  }

  /** Waits after an answer that is not a success. Throws a refusal of the broker. */
  async after(response: Response, token: string | undefined): Promise<void> {
    if (response.status === 401) {
      this.#connection.refuse(token);
      if (token === undefined) await this.#pause.wait(TOKEN_MS, this.#signal);
      return;
    }
    const problem = REFUSALS.includes(response.status) ? await readProblem(response) : undefined;
    if (problem !== undefined) throw PulseClientError.of(problem);
    await this.pause(readRetryAfter(response));
  }

  /** Waits after a lost connection. */
  async pause(minMs = 0): Promise<void> {
    await this.#pause.wait(this.#backoff.next(), this.#signal, Math.min(minMs, 300_000));
    this.#signal.throwIfAborted();
  }

  /** The connection is good. */
  reset(): void {
    this.#backoff.reset();
  }
}
