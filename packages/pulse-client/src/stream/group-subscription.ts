// A member of a group, by a WebSocket that acknowledges each message.
import { Backoff } from "../backoff.ts";
import type { Connection } from "../connection.ts";
import { PulseClientError } from "../errors.ts";
import type { ReceivedMessage } from "../message.ts";
import { Attempts, type SubscribeOptions } from "./subscribe-options.ts";

const REVOKED = 1008;

/** Messages of a group; each is acknowledged when the next one is asked for, and delivered again if it never is. */
export async function* followGroup(
  connection: Connection,
  topic: string,
  { group, prefetch, from }: SubscribeOptions & { group: string },
  signal: AbortSignal,
): AsyncGenerator<ReceivedMessage, void> {
  const attempts = new Attempts(connection, new Backoff(1_000, 30_000), signal);
  const query = {
    group,
    ack: "manual",
    prefetch: prefetch?.toString(),
    from: from?.toString(),
  };
  while (!signal.aborted) {
    try {
      const token = await attempts.token();
      const url = connection.address(`/ws/subscribe/${encodeURIComponent(topic)}`, {
        ...query,
        // The WebSocket API has no headers.
        access_token: token,
      });
      url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
      const member = new Member(url, signal);
      try {
        if (!(await member.opened)) {
          // The browser does not tell the answer to a handshake.
          await probe(connection, topic, query, token, attempts, signal);
          continue;
        }
        attempts.reset();
        for await (const message of member.read()) {
          yield message;
          member.acknowledge(message.message_id);
        }
        if (member.closeCode === REVOKED) connection.refuse(token);
      } finally {
        member.close();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof PulseClientError) throw error;
    }
    try {
      await attempts.pause();
    } catch {
      return;
    }
  }
}

// Opens the same subscription by HTTP, and leaves it at once: the answer has the reason.
async function probe(
  connection: Connection,
  topic: string,
  query: Record<string, string | undefined>,
  token: string | undefined,
  attempts: Attempts,
  signal: AbortSignal,
): Promise<void> {
  const ended = new AbortController();
  try {
    const path = `/api/v1/subscribe/${encodeURIComponent(topic)}`;
    const response = await connection.fetch(connection.address(path, query), token, {
      signal: AbortSignal.any([signal, ended.signal]),
    });
    if (response.ok) await attempts.pause();
    else await attempts.after(response, token);
  } finally {
    ended.abort();
  }
}

/** One connection. The broker sends at most `prefetch` messages that are not acknowledged. */
class Member {
  readonly opened: Promise<boolean>;
  readonly #socket: WebSocket;
  readonly #waiting: ReceivedMessage[] = [];
  closeCode: number | undefined;
  #changed: () => void = () => undefined;

  constructor(url: URL, signal: AbortSignal) {
    const socket = new WebSocket(url);
    this.#socket = socket;
    const close = (): void => socket.close();
    signal.addEventListener("abort", close);
    this.opened = new Promise((resolve) => {
      socket.addEventListener("open", () => resolve(true));
      socket.addEventListener("close", ({ code }) => {
        signal.removeEventListener("abort", close);
        this.closeCode = code;
        resolve(false);
        this.#changed();
      });
    });
    socket.addEventListener("message", ({ data }) => {
      const message = JSON.parse(String(data)) as Partial<ReceivedMessage>;
      // An answer to an acknowledgement that came too late: the message is delivered again.
      if (message.message_id === undefined) return;
      this.#waiting.push(message as ReceivedMessage);
      this.#changed();
    });
  }

  /** Messages until the connection ends. */
  async *read(): AsyncGenerator<ReceivedMessage, void> {
    while (this.closeCode === undefined) {
      const next = this.#waiting.shift();
      if (next === undefined) await new Promise<void>((resolve) => (this.#changed = resolve));
      else yield next;
    }
  }

  acknowledge(messageId: string): void {
    if (this.closeCode === undefined) this.#socket.send(JSON.stringify({ ack: messageId }));
  }

  close(): void {
    this.#socket.close();
  }
}
