// The stream of a topic's newest messages, which continues after the last one when it was lost.
import { segment, withQuery } from "../api/api.ts";
import { LiveSocket } from "../live/live-socket.ts";
import { brokerSocketUrl } from "./broker.ts";

/** Position of a message in its topic. */
interface Place {
  partition: number;
  offset: number;
}

/** A subscription of the newest messages of a topic. */
export class TailStream {
  readonly #socket: LiveSocket;
  /** Last offset by partition. */
  readonly #position = new Map<number, number>();
  readonly #partitions: number;

  /**
   * `partitions` of the topic: a position must name all of them. `on.open` is called whenever the stream begins at the
   * newest message or continues.
   */
  constructor(
    topic: string,
    partitions: number,
    on: { message: (raw: string) => void; open: () => void },
  ) {
    this.#partitions = partitions;
    const url = (): string => {
      const last = [...this.#position].map(([partition, offset]) => `${partition}:${offset}`);
      // Partitions without a position would be read from their beginning.
      const { isComplete } = this;
      const path = withQuery(`/ws/subscribe/${segment(topic)}`, {
        from: isComplete ? undefined : "latest",
        last_event_id: isComplete ? last.join(",") : undefined,
      });
      return brokerSocketUrl(path);
    };
    this.#socket = new LiveSocket({ url, onMessage: on.message, onOpen: on.open });
  }

  /** State of the connection. */
  get state(): LiveSocket["state"] {
    return this.#socket.state;
  }

  /** True if the stream continues after its last message; otherwise it begins with the next one. */
  get isComplete(): boolean {
    return this.#position.size >= this.#partitions;
  }

  /** True if the message, or a later one of its partition, is remembered. */
  isKnown({ partition, offset }: Place): boolean {
    return offset <= (this.#position.get(partition) ?? -1);
  }

  /** Remembers a message's position, from which the stream continues after a loss. */
  remember({ partition, offset }: Place): void {
    this.#position.set(partition, offset);
  }

  /** Ends the subscription. */
  close(): void {
    this.#socket.close();
  }
}
