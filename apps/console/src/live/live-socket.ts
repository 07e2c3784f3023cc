// A WebSocket of a service: connected again after a loss, let go while the tab is hidden.
import { signal } from "@preact/signals";
import { retryDelayMs } from "../api/retry.ts";

const HIDDEN_MS = 60_000;
/** A connection of this length was a good one: the next attempt follows quickly. */
const STABLE_MS = 5_000;
const GOING_AWAY = 1001;

/** State of the connection. */
export type SocketState =
  | { kind: "connecting" }
  | { kind: "open" }
  /** The server closed the connection, because the page read too slowly or it stops; it is connected again. */
  | { kind: "resumed" }
  | { kind: "lost"; since: number; reason: string };

/** Options of {@link LiveSocket}. */
interface LiveSocketOptions {
  /** Address of the next connection; it may name the position of the last message. */
  url: () => string;
  onMessage: (text: string) => void;
  onOpen?: () => void;
}

/** A connection that lasts until it is closed. */
export class LiveSocket {
  readonly state = signal<SocketState>({ kind: "connecting" });
  readonly #options: LiveSocketOptions;
  #socket: WebSocket | undefined;
  #openedMs = Number.POSITIVE_INFINITY;
  #attempts = 0;
  #retryTimer = 0;
  #hiddenTimer = 0;
  #isClosed = false;

  constructor(options: LiveSocketOptions) {
    this.#options = options;
    document.addEventListener("visibilitychange", this.#handleVisibility);
    this.#connect();
  }

  /** Ends it. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#retryTimer);
    clearTimeout(this.#hiddenTimer);
    document.removeEventListener("visibilitychange", this.#handleVisibility);
    this.#socket?.close();
  }

  #connect(): void {
    const socket = new WebSocket(this.#options.url());
    this.#socket = socket;
    this.#openedMs = Number.POSITIVE_INFINITY;
    socket.addEventListener("open", () => {
      this.#openedMs = performance.now();
      this.state.value = { kind: "open" };
      this.#options.onOpen?.();
    });
    socket.addEventListener("message", (event) => {
      this.#attempts = 0;
      this.#options.onMessage(String(event.data));
    });
    socket.addEventListener("close", (event) => this.#lose(socket, event));
  }

  #lose(socket: WebSocket, { code, reason }: CloseEvent): void {
    if (this.#isClosed || this.#socket !== socket) return;
    this.#socket = undefined;
    if (document.hidden) return;
    if (performance.now() - this.#openedMs > STABLE_MS) this.#attempts = 0;
    if (code === GOING_AWAY && this.#attempts === 0) this.state.value = { kind: "resumed" };
    else if (this.state.value.kind !== "lost") {
      this.state.value = { kind: "lost", since: Date.now(), reason };
    }
    const waitMs = retryDelayMs(this.#attempts);
    this.#attempts += 1;
    clearTimeout(this.#retryTimer);
    this.#retryTimer = window.setTimeout(() => this.#connect(), waitMs);
  }

  readonly #handleVisibility = (): void => {
    clearTimeout(this.#hiddenTimer);
    if (document.hidden) {
      this.#hiddenTimer = window.setTimeout(() => this.#socket?.close(1000), HIDDEN_MS);
    } else if (this.#socket === undefined && !this.#isClosed) {
      clearTimeout(this.#retryTimer);
      this.#connect();
    }
  };
}
