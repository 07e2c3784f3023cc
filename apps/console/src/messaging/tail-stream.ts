// The WebSocket of a tail: reconnects with the position of the last message, and lets go while the tab is hidden.
import { signal } from "@preact/signals";
import { socketUrl } from "../session/session.ts";
import { segment, withQuery } from "../api/api.ts";

const RETRY_MS = [500, 1_000, 2_000, 5_000, 15_000];
const HIDDEN_MS = 60_000;
const GOING_AWAY = 1001;

/** State of a stream. */
export type StreamState =
  | { kind: "connecting" }
  | { kind: "open" }
  /** The server closed the connection because the page read too slowly; it continues where it was. */
  | { kind: "resumed" }
  | { kind: "lost"; since: number; reason: string };

/** A subscription of the newest messages of a topic. */
export class TailStream {
  readonly state = signal<StreamState>({ kind: "connecting" });
  readonly #topic: string;
  readonly #partitions: number;
  readonly #onMessage: (raw: string) => void;
  #socket: WebSocket | undefined;
  /** Last offset by partition. */
  readonly #position = new Map<number, number>();
  #attempts = 0;
  #timer = 0;
  #hiddenTimer = 0;
  #isClosed = false;

  /** `partitions` of the topic: a position must name all of them. */
  constructor(topic: string, partitions: number, onMessage: (raw: string) => void) {
    this.#topic = topic;
    this.#partitions = partitions;
    this.#onMessage = onMessage;
    document.addEventListener("visibilitychange", this.#handleVisibility);
    this.#connect();
  }

  /** Remembers a message's position, from which the stream continues after a loss. */
  remember(partition: number, offset: number): void {
    this.#position.set(partition, offset);
  }

  /** Ends the subscription. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    clearTimeout(this.#hiddenTimer);
    document.removeEventListener("visibilitychange", this.#handleVisibility);
    this.#socket?.close();
  }

  #connect(): void {
    const last = [...this.#position].map(([partition, offset]) => `${partition}:${offset}`);
    // Partitions without a position would be read from their beginning.
    const isComplete = last.length >= this.#partitions;
    const path = withQuery(`/ws/subscribe/${segment(this.#topic)}`, {
      from: isComplete ? undefined : "latest",
      last_event_id: isComplete ? last.join(",") : undefined,
    });
    const socket = new WebSocket(socketUrl("pulse", path));
    this.#socket = socket;
    socket.addEventListener("open", () => {
      this.state.value = { kind: "open" };
    });
    socket.addEventListener("message", (event) => {
      this.#attempts = 0;
      this.#onMessage(String(event.data));
    });
    socket.addEventListener("close", (event) => this.#lose(socket, event));
  }

  #lose(socket: WebSocket, event: CloseEvent): void {
    if (this.#isClosed || this.#socket !== socket) return;
    this.#socket = undefined;
    if (event.code === GOING_AWAY && this.#attempts === 0) this.state.value = { kind: "resumed" };
    else if (this.state.value.kind !== "lost") {
      this.state.value = { kind: "lost", since: Date.now(), reason: event.reason };
    }
    if (document.hidden) return;
    const waitMs = RETRY_MS[Math.min(this.#attempts, RETRY_MS.length - 1)]!;
    this.#attempts += 1;
    clearTimeout(this.#timer);
    this.#timer = window.setTimeout(() => this.#connect(), waitMs);
  }

  readonly #handleVisibility = (): void => {
    clearTimeout(this.#hiddenTimer);
    if (document.hidden) {
      this.#hiddenTimer = window.setTimeout(() => this.#socket?.close(1000), HIDDEN_MS);
    } else if (this.#socket === undefined && !this.#isClosed) {
      clearTimeout(this.#timer);
      this.#connect();
    }
  };
}
