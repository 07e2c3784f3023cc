// Encoded messages, built once for all subscribers that are up to date.
import { formatMessage, type Message } from "../message/message.ts";

/** Caches the bytes of a message as long as the message is referenced. */
export class MessageFrames {
  readonly #events = new WeakMap<Message, { id: string | undefined; frame: Buffer }>();
  readonly #lines = new WeakMap<Message, Buffer>();

  /** One server-sent event, with or without an id. Subscribers that are up to date have the same id. */
  event(message: Message, id: string | undefined): Buffer {
    const known = this.#events.get(message);
    if (known !== undefined && known.id === id) return known.frame;
    const frame = Buffer.concat([
      Buffer.from(id === undefined ? "data: " : `id: ${id}\ndata: `),
      this.line(message),
      Buffer.from("\n\n"),
    ]);
    this.#events.set(message, { id, frame });
    return frame;
  }

  /** The line of JSON. */
  line(message: Message): Buffer {
    const known = this.#lines.get(message);
    if (known !== undefined) return known;
    const line = Buffer.from(formatMessage(message));
    this.#lines.set(message, line);
    return line;
  }
}
