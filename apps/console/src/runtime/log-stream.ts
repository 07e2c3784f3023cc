// The stream of log lines: connected again after a loss, let go while the tab is hidden.
import { signal } from "@preact/signals";
import { withQuery } from "../api/api.ts";
import { socketUrl } from "../session/session.ts";

const RETRY_MS = [500, 1_000, 2_000, 5_000, 15_000];
const HIDDEN_MS = 60_000;

/** A line of the log. */
export interface LogLine {
  id: string;
  timestamp: string;
  level: string;
  service: string;
  msg: string;
  trace_id: string;
  fields: Record<string, unknown>;
}

/** The filter; empty members accept everything. */
export interface LogFilter {
  service: string;
  level: string;
  q: string;
}

/** State of the stream. */
export type LogStreamState = { kind: "open" | "connecting" } | { kind: "lost"; since: number };

/** A subscription. `onOpen` is called whenever it is connected: lines before that must be loaded. */
export class LogStream {
  readonly state = signal<LogStreamState>({ kind: "connecting" });
  /** Lines that the server left out, because this page read too slowly. */
  readonly missed = signal(0);
  readonly #url: string;
  readonly #onLines: (lines: LogLine[]) => void;
  readonly #onOpen: () => void;
  #socket: WebSocket | undefined;
  #attempts = 0;
  #timer = 0;
  #isClosed = false;

  constructor(filter: LogFilter, onLines: (lines: LogLine[]) => void, onOpen: () => void) {
    this.#url = socketUrl("runtime", withQuery("/api/v1/logs/ws", { ...filter }));
    this.#onLines = onLines;
    this.#onOpen = onOpen;
    document.addEventListener("visibilitychange", this.#handleVisibility);
    this.#connect();
  }

  /** Ends it. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    document.removeEventListener("visibilitychange", this.#handleVisibility);
    this.#socket?.close();
  }

  #connect(): void {
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.#attempts = 0;
      this.state.value = { kind: "open" };
      this.#onOpen();
    });
    socket.addEventListener("message", (event) => {
      const { items, missed } = JSON.parse(String(event.data)) as {
        items: LogLine[];
        missed: number;
      };
      this.missed.value += missed;
      if (items.length > 0) this.#onLines(items);
    });
    socket.addEventListener("close", () => this.#lose(socket));
  }

  #lose(socket: WebSocket): void {
    if (this.#isClosed || this.#socket !== socket) return;
    this.#socket = undefined;
    if (document.hidden) return;
    if (this.state.value.kind !== "lost") this.state.value = { kind: "lost", since: Date.now() };
    const waitMs = RETRY_MS[Math.min(this.#attempts, RETRY_MS.length - 1)]!;
    this.#attempts += 1;
    this.#timer = window.setTimeout(() => this.#connect(), waitMs);
  }

  readonly #handleVisibility = (): void => {
    clearTimeout(this.#timer);
    if (document.hidden) {
      this.#timer = window.setTimeout(() => this.#socket?.close(1000), HIDDEN_MS);
    } else if (this.#socket === undefined && !this.#isClosed) this.#connect();
  };
}
