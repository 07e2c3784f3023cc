// The stream of a topic's newest messages, which continues after the last one when it was lost.
import { segment, withQuery } from "../api/api.ts";
import { LiveSocket } from "../live/live-socket.ts";
import { brokerSocketUrl } from "./broker.ts";

/** A subscription of the newest messages of a topic. */
export class TailStream {
  readonly #socket: LiveSocket;
  /** Last offset by partition. */
  readonly #position = new Map<number, number>();

  /** `partitions` of the topic: a position must name all of them. */
  constructor(topic: string, partitions: number, onMessage: (raw: string) => void) {
    const url = (): string => {
      const last = [...this.#position].map(([partition, offset]) => `${partition}:${offset}`);
      // Partitions without a position would be read from their beginning.
      const isComplete = last.length >= partitions;
      const path = withQuery(`/ws/subscribe/${segment(topic)}`, {
        from: isComplete ? undefined : "latest",
        last_event_id: isComplete ? last.join(",") : undefined,
      });
      return brokerSocketUrl(path);
    };
    this.#socket = new LiveSocket({ url, onMessage });
  }

  /** State of the connection. */
  get state(): LiveSocket["state"] {
    return this.#socket.state;
  }

  /** Remembers a message's position, from which the stream continues after a loss. */
  remember(partition: number, offset: number): void {
    this.#position.set(partition, offset);
  }

  /** Ends the subscription. */
  close(): void {
    this.#socket.close();
  }
}
