// One SMTP server with its open connections; sends messages and converts replies to outcomes.
import type { Outcome, RelayReply } from "../../delivery.ts";
import { findRetryHint } from "../retry-hint.ts";
import {
  SmtpConnection,
  type Envelope,
  type SendReply,
  type SmtpConnectionOptions,
} from "./connection.ts";
import { toReplyText } from "./reply.ts";
import { SmtpConnectionError } from "./socket.ts";

/** Options of a server. */
export interface SmtpServerOptions extends SmtpConnectionOptions {
  /** Connections are closed after this number of messages. */
  messagesPerConnectionMax: number;
  /** Idle connections are closed after this time. */
  idleMs: number;
}

/** The connection failed before the content was complete: another server may be tried. */
export interface Unreachable {
  kind: "unreachable";
  reply: RelayReply;
}

/** A server. Its connections are limited by the number of concurrent calls of `send`. */
export class SmtpServer {
  readonly #options: SmtpServerOptions;
  readonly #idle: SmtpConnection[] = [];
  readonly #timers = new Map<SmtpConnection, NodeJS.Timeout>();
  #isClosed = false;

  constructor(options: SmtpServerOptions) {
    this.#options = options;
  }

  get host(): string {
    return this.#options.endpoint.host;
  }

  /** Sends a message for one recipient. Never rejects. */
  async send(
    envelope: Envelope,
    parts: readonly Buffer[],
    signal: AbortSignal,
  ): Promise<Outcome | Unreachable> {
    let connection: SmtpConnection | undefined;
    const abort = (): void => connection?.destroy();
    signal.addEventListener("abort", abort, { once: true });
    try {
      for (;;) {
        const reused = this.#takeIdle();
        connection = reused ?? (await this.#open());
        if (signal.aborted) connection.destroy();
        try {
          const sent = await connection.send(envelope, parts);
          this.#giveBack(connection, sent.reply.code);
          return toOutcome(sent, this.host);
        } catch (error) {
          connection.destroy();
          const isStale = reused !== undefined && isBeforeContent(error) && !signal.aborted;
          // The server closed the idle connection: a new one is tried.
          if (!isStale) throw error;
        }
      }
    } catch (error) {
      return this.#toFailure(error);
    } finally {
      signal.removeEventListener("abort", abort);
    }
  }

  /** Closes idle connections; those in use close after their message. */
  close(): void {
    this.#isClosed = true;
    for (const connection of this.#idle.splice(0)) this.#drop(connection);
  }

  async #open(): Promise<SmtpConnection> {
    const { endpoint } = this.#options;
    try {
      return await SmtpConnection.open(this.#options);
    } catch (error) {
      const isTls = error instanceof SmtpConnectionError && error.step === "STARTTLS";
      if (!isTls || endpoint.tls !== "opportunistic") throw error;
      // RFC 7435: opportunistic encryption falls back to plain text.
      return await SmtpConnection.open({ ...this.#options, endpoint: { ...endpoint, tls: "off" } });
    }
  }

  #takeIdle(): SmtpConnection | undefined {
    for (let found = this.#idle.pop(); found !== undefined; found = this.#idle.pop()) {
      clearTimeout(this.#timers.get(found));
      this.#timers.delete(found);
      found.onClose = undefined;
      if (!found.isOpen) continue;
      found.setIdle(false);
      return found;
    }
    return undefined;
  }

  #giveBack(connection: SmtpConnection, code: number): void {
    const isUsedUp = connection.sent >= this.#options.messagesPerConnectionMax;
    if (this.#isClosed || isUsedUp || code === 421) {
      connection.quit();
      return;
    }
    if (!connection.isOpen) return;
    connection.setIdle(true);
    connection.onClose = () => this.#forget(connection);
    this.#idle.push(connection);
    const timer = setTimeout(() => {
      this.#forget(connection);
      connection.quit();
    }, this.#options.idleMs);
    this.#timers.set(connection, timer.unref());
  }

  #forget(connection: SmtpConnection): void {
    clearTimeout(this.#timers.get(connection));
    this.#timers.delete(connection);
    const at = this.#idle.indexOf(connection);
    if (at !== -1) this.#idle.splice(at, 1);
  }

  #drop(connection: SmtpConnection): void {
    this.#forget(connection);
    connection.quit();
  }

  #toFailure(error: unknown): Outcome | Unreachable {
    const known = error instanceof SmtpConnectionError ? error : undefined;
    const message = error instanceof Error ? error.message : String(error);
    const reply = {
      relay: this.host,
      code: known?.reply?.code,
      enhanced: known?.reply?.enhanced,
      text: known === undefined ? message : `${known.step}: ${message}`,
    };
    if (known?.mayHaveArrived !== true) return { kind: "unreachable", reply };
    return { kind: "deferred", cause: "relay", reply, mayHaveArrived: true };
  }
}

function isBeforeContent(error: unknown): boolean {
  return error instanceof SmtpConnectionError && error.step !== "content";
}

function toOutcome({ step, reply }: SendReply, relay: string): Outcome {
  const text = toReplyText(reply);
  const shown = { relay, code: reply.code, enhanced: reply.enhanced, text };
  if (reply.code < 300) return { kind: "sent", reply: shown };
  if (reply.code < 500) {
    const cause = reply.code === 421 ? "relay" : "recipient";
    const retryAfterMs = findRetryHint(text);
    return { kind: "deferred", cause, reply: shown, retryAfterMs, mayHaveArrived: false };
  }
  // RFC 3463 section 3.2: X.1.Y concerns addresses; the sender's are 5.1.7 and 5.1.8.
  const isAddress = /^5\.(?:1\.(?!7$|8$)|2\.)/.test(reply.enhanced ?? "");
  const cause = step === "RCPT" || (step !== "MAIL" && isAddress) ? "recipient" : "message";
  return { kind: "rejected", cause, reply: shown };
}
