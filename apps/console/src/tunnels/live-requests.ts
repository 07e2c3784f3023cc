// The live list of captured requests: pages of the API, and what the stream adds while it is shown.
import type { Answer } from "../contract/answer.ts";
import { signal } from "@preact/signals";
import { segment, withQuery, type ApiFailure } from "../api/api.ts";
import { LiveSocket } from "../live/live-socket.ts";
import { callService, socketUrl } from "../session/session.ts";
import { toFailure } from "../view/load.ts";
import type { Captured } from "./captured.ts";

const PAGE = 100;
/** Rows that the page keeps, and those that wait while one reads; older ones are loaded again by paging. */
const ROWS_MAX = 1_000;
/** Requests that the stream has left out are loaded after this time. */
const CATCH_UP_MS = 1_000;

type Page = Exclude<Answer<"tunnel", "GET /tunnels/{id}/requests">, { log: unknown }>;

/** The filter; empty members accept everything. */
export interface RequestFilter {
  q: string;
  status: string | undefined;
}

/** The list of a tunnel, newest first. Nothing that somebody reads moves: while it is held, new rows wait. */
export class LiveRequests {
  /** Undefined until the first page is loaded. */
  readonly rows = signal<readonly Captured[] | undefined>(undefined);
  readonly waiting = signal<readonly Captured[]>([]);
  /** Changes that the relay left out, because they came too fast. */
  readonly missed = signal(0);
  readonly failure = signal<ApiFailure | undefined>(undefined);
  /** True if the relay has older requests. */
  readonly hasOlder = signal(false);
  readonly #tunnel: string;
  readonly #filter: RequestFilter;
  readonly #socket: LiveSocket;
  #isHeld = false;
  /** True if requests are missing between what waits and the rows. */
  #hasGap = false;
  #isClosed = false;
  #catchUp = 0;

  constructor(tunnel: string, filter: RequestFilter) {
    this.#tunnel = tunnel;
    this.#filter = filter;
    const url = socketUrl("tunnel", withQuery(`/api/v1${this.#path()}/ws`, { ...filter }));
    void this.reload();
    this.#socket = new LiveSocket({
      url: () => url,
      onOpen: () => void this.reload(),
      onMessage: (text) => this.#add(JSON.parse(text) as { items: Captured[]; missed: number }),
    });
  }

  /** State of the stream. */
  get state(): LiveSocket["state"] {
    return this.#socket.state;
  }

  /** Holds the list, or lets it go and shows what has waited. */
  hold(isHeld: boolean): void {
    this.#isHeld = isHeld;
    if (!isHeld) this.showWaiting();
  }

  /** Shows what has waited. */
  showWaiting(): void {
    if (this.waiting.value.length === 0) return;
    const rows = [...this.waiting.value, ...(this.#hasGap ? [] : (this.rows.value ?? []))];
    if (this.#hasGap) this.hasOlder.value = true;
    this.#hasGap = false;
    this.waiting.value = [];
    this.#keep(rows);
  }

  /** Loads the newest page. */
  async reload(): Promise<void> {
    await this.#load(undefined, ({ requests, next_cursor: next }) => {
      const known = new Set(
        [...this.waiting.value, ...(this.rows.value ?? [])].map(({ id }) => id),
      );
      // More than a page was missed: what comes between is loaded by paging.
      const isGap = next !== null && !requests.some(({ id }) => known.has(id));
      if (this.rows.value === undefined || (isGap && !this.#isHeld)) {
        this.rows.value = requests;
        this.hasOlder.value = next !== null;
      } else if (isGap) {
        this.waiting.value = requests;
        this.#hasGap = true;
      } else this.#merge(requests.toReversed());
    });
  }

  /** Loads the page after the oldest row. */
  async loadOlder(): Promise<void> {
    const oldest = this.rows.value?.at(-1);
    if (oldest === undefined) return;
    await this.#load(oldest.id, ({ requests, next_cursor: next }) => {
      this.hasOlder.value = next !== null;
      const known = new Set(this.rows.value?.map(({ id }) => id));
      const older = requests.filter(({ id }) => !known.has(id));
      this.rows.value = [...(this.rows.value ?? []), ...older];
    });
  }

  /** Ends it. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#catchUp);
    this.#socket.close();
  }

  #path(): string {
    return `/tunnels/${segment(this.#tunnel)}/requests`;
  }

  async #load(cursor: string | undefined, accept: (page: Page) => void): Promise<void> {
    try {
      const query = { ...this.#filter, cursor, limit: PAGE };
      const page = await callService<Page>("tunnel", withQuery(this.#path(), query));
      if (this.#isClosed) return;
      this.failure.value = undefined;
      accept(page);
    } catch (error) {
      if (!this.#isClosed) this.failure.value = toFailure(error);
    }
  }

  #add({ items, missed }: { items: Captured[]; missed: number }): void {
    if (this.rows.value !== undefined) this.#merge(items);
    if (missed === 0) return;
    this.missed.value += missed;
    clearTimeout(this.#catchUp);
    this.#catchUp = window.setTimeout(() => void this.reload(), CATCH_UP_MS);
  }

  // `items` are the oldest first; those that are known are replaced where they are.
  #merge(items: readonly Captured[]): void {
    if (items.length === 0) return;
    const latest = new Map(items.map((item) => [item.id, item]));
    const replace = (known: readonly Captured[]): Captured[] =>
      known.map((row) => {
        const found = latest.get(row.id);
        latest.delete(row.id);
        return found ?? row;
      });
    const rows = replace(this.rows.value ?? []);
    const waiting = replace(this.waiting.value);
    const fresh = [...latest.values()].reverse();
    if (this.#isHeld) {
      this.rows.value = rows;
      const all = [...fresh, ...waiting];
      this.waiting.value = all.slice(0, ROWS_MAX);
      if (all.length > ROWS_MAX) this.#hasGap = true;
    } else this.#keep([...fresh, ...rows]);
  }

  #keep(rows: readonly Captured[]): void {
    if (rows.length > ROWS_MAX) this.hasOlder.value = true;
    this.rows.value = rows.slice(0, ROWS_MAX);
  }
}
