// Renderings of unsaved templates, kept for the frame that shows them: a page may not create documents from strings.
import { randomBytes } from "node:crypto";
import type { Clock } from "@platform/kernel/time";

interface Kept {
  client: string;
  html: string;
  untilMs: number;
}

const KEPT_MS = 60_000;
const KEPT_MAX = 256;
const KEPT_PER_CLIENT_MAX = 16;
const CHARACTERS_MAX = 32 * 1024 * 1024;
const ID_BYTES = 16;

/** The latest renderings in memory. */
export class RenderedDrafts {
  readonly #clock: Clock;
  readonly #kept = new Map<string, Kept>();
  #characters = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Keeps a rendering for a minute and returns its id; the oldest of the client, or of all, make room. */
  add(client: string, html: string): string {
    const nowMs = this.#clock.monotonicMs();
    const own: string[] = [];
    for (const [id, kept] of this.#kept) {
      if (kept.untilMs <= nowMs) this.#remove(id);
      else if (kept.client === client) own.push(id);
    }
    for (const id of own.slice(0, Math.max(0, own.length - KEPT_PER_CLIENT_MAX + 1))) {
      this.#remove(id);
    }
    for (const id of this.#kept.keys()) {
      const isFull = this.#kept.size >= KEPT_MAX || this.#characters + html.length > CHARACTERS_MAX;
      if (!isFull) break;
      this.#remove(id);
    }
    const id = randomBytes(ID_BYTES).toString("base64url");
    this.#kept.set(id, { client, html, untilMs: nowMs + KEPT_MS });
    this.#characters += html.length;
    return id;
  }

  /** Returns a rendering of a client; undefined if it is not kept. */
  read(client: string, id: string): string | undefined {
    const kept = this.#kept.get(id);
    const isValid = kept?.client === client && kept.untilMs > this.#clock.monotonicMs();
    return isValid ? kept.html : undefined;
  }

  #remove(id: string): void {
    this.#characters -= this.#kept.get(id)?.html.length ?? 0;
    this.#kept.delete(id);
  }
}
