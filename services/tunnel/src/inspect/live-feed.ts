// Open pages of the inspector: each receives changes as server-sent events.
import type { ServerResponse } from "node:http";

const PAGES_MAX = 32;
const PENDING_BYTES_MAX = 262_144;
const NOTICE_MS = 100;

/** All open event streams. */
export class LiveFeed {
  readonly #pages = new Set<ServerResponse>();
  readonly #changed = new Set<string>();
  #timer: NodeJS.Timeout | undefined;

  get size(): number {
    return this.#pages.size;
  }

  /** Adds a page; false if there are too many. `first`: its first events by name. */
  add(response: ServerResponse, first: Readonly<Record<string, object>>): boolean {
    if (this.#pages.size >= PAGES_MAX) return false;
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" });
    this.#pages.add(response);
    response.on("close", () => this.#pages.delete(response));
    for (const [name, value] of Object.entries(first)) response.write(formatEvent(name, value));
    return true;
  }

  /** Sends an event to all pages. */
  send(name: string, value: object): void {
    const text = formatEvent(name, value);
    for (const page of this.#pages) {
      // A page that does not read reconnects and starts afresh.
      if (page.writableLength > PENDING_BYTES_MAX) page.destroy();
      else page.write(text);
    }
  }

  /** Tells the pages that requests of these tunnels have finished, at most ten times a second. */
  notice(tunnelIds: Iterable<string>): void {
    for (const id of tunnelIds) this.#changed.add(id);
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.send("requests", { tunnels: [...this.#changed] });
      this.#changed.clear();
    }, NOTICE_MS);
  }

  /** Keeps the streams alive. */
  ping(): void {
    for (const page of this.#pages) page.write(": ping\n\n");
  }

  close(): void {
    clearTimeout(this.#timer);
    for (const page of this.#pages) page.destroy();
  }
}

function formatEvent(name: string, value: object): string {
  return `event: ${name}\ndata: ${JSON.stringify(value)}\n\n`;
}
