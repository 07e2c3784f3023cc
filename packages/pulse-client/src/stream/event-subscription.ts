// A subscription by server-sent events over `fetch`, which can send headers as EventSource cannot.
import { Backoff } from "../backoff.ts";
import type { Connection } from "../connection.ts";
import { PulseClientError } from "../errors.ts";
import type { ReceivedMessage } from "../message.ts";
import { readServerEvents } from "./server-events.ts";
import { Attempts } from "./subscribe-options.ts";

/** The topic and the beginning of a stream. */
export interface EventSubscription {
  topic: string;
  from: string | undefined;
  /** Position of the broker to continue from; before `from`. */
  position: string | undefined;
  /** Called when the broker has accepted the subscription, with the position before the first message. */
  onOpen?: (position: string | undefined) => void;
}

/** A message with the position after it. */
export interface PlacedMessage {
  message: ReceivedMessage;
  position: string | undefined;
}

/** Messages over any number of connections, each continued where the last one ended. */
export async function* followEvents(
  connection: Connection,
  subscription: EventSubscription,
  signal: AbortSignal,
): AsyncGenerator<PlacedMessage, void> {
  const attempts = new Attempts(connection, new Backoff(1_000, 30_000), signal);
  let { position } = subscription;
  while (!signal.aborted) {
    try {
      const token = await attempts.token();
      const path = `/api/v1/subscribe/${encodeURIComponent(subscription.topic)}`;
      const response = await connection.fetch(
        connection.address(path, { from: subscription.from }),
        token,
        {
          headers: {
            accept: "text/event-stream",
            ...(position === undefined ? {} : { "last-event-id": position }),
          },
          signal,
        },
      );
      if (!response.ok || response.body === null || !isEventStream(response)) {
        await attempts.after(response, token);
        continue;
      }
      attempts.reset();
      position ??= response.headers.get("last-event-id") ?? undefined;
      subscription.onOpen?.(position);
      for await (const { type, id, data } of readServerEvents(response.body)) {
        if (type !== "message") break;
        position = id ?? position;
        yield { message: JSON.parse(data) as ReceivedMessage, position };
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

function isEventStream(response: Response): boolean {
  return /^text\/event-stream\b/.test(response.headers.get("content-type") ?? "");
}
