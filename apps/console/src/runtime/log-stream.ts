// The stream of log lines.
import { signal } from "@preact/signals";
import type { LogLine } from "@platform/console/contract";
import { withQuery } from "../api/api.ts";
import { LiveSocket } from "../live/live-socket.ts";
import { socketUrl } from "../session/session.ts";

/** The filter; empty members accept everything. */
export interface LogFilter {
  service: string;
  level: string;
  q: string;
}

/** A subscription. `onOpen` is called whenever it is connected: lines before that must be loaded. */
export class LogStream {
  /** Lines that the server left out, because this page read too slowly. */
  readonly missed = signal(0);
  readonly #socket: LiveSocket;

  constructor(filter: LogFilter, onLines: (lines: LogLine[]) => void, onOpen: () => void) {
    const url = socketUrl("runtime", withQuery("/api/v1/logs/ws", { ...filter }));
    this.#socket = new LiveSocket({
      url: () => url,
      onOpen,
      onMessage: (text) => {
        const { items, missed } = JSON.parse(text) as { items: LogLine[]; missed: number };
        this.missed.value += missed;
        if (items.length > 0) onLines(items);
      },
    });
  }

  /** State of the connection. */
  get state(): LiveSocket["state"] {
    return this.#socket.state;
  }

  /** Ends it. */
  close(): void {
    this.#socket.close();
  }
}
