// A live tail as a window over a bounded ring: a fixed pool of rows whose text is replaced, painted the less often the
// faster rows come. Only visible rows are parsed. Sequence numbers never repeat, so that scrolling back stays put while new rows come:
// the spacer's height is constant once the ring is full.
import { hasReducedMotion } from "../session/preferences.ts";

/** Options of a tail. */
export interface TailOptions<Row> {
  /** Rows that are kept. */
  capacity: number;
  rowPx: number;
  parse: (raw: string) => Row;
  /** Fills a pooled row element for a row. */
  fill: (element: HTMLElement, row: Row, raw: string) => void;
  onFollow: (following: boolean, newer: number) => void;
  onPick: (row: Row) => void;
}

/** Paints a second by the rows that come in one: the more scroll by, the less of it can be read. */
const PAINT_HZ = [
  { fromRows: 1_000, hz: 5 },
  { fromRows: 100, hz: 10 },
  { fromRows: 0, hz: 60 },
] as const;
const RATE_MS = 1_000;
/** Rows that scroll by are motion: for people who ask for less of it. */
const CALM_HZ = 0.5;

interface PooledRow {
  element: HTMLElement;
  seq: number;
}

/** A live tail in a scrolling element. */
export class TailView<Row> {
  readonly #options: TailOptions<Row>;
  #raw: string[];
  readonly #scroller: HTMLElement;
  readonly #spacer: HTMLElement;
  readonly #rows: PooledRow[] = [];
  readonly #resize: ResizeObserver;
  readonly #abort = new AbortController();
  #total = 0;
  #following = true;
  /** While the reader has scrolled back nothing may be overwritten: what comes waits here, bounded as well. */
  #later: string[] | undefined;
  #missed = 0;
  #timer = 0;
  #frame = 0;
  #lastPaintMs = 0;
  #height = -1;
  /** Rows of this second. */
  #rate = 0;
  /** Rows of the second before. */
  #rateBefore = 0;
  #rateAtMs = 0;
  #selected = -1;

  constructor(host: HTMLElement, options: TailOptions<Row>) {
    this.#options = options;
    this.#raw = [];
    this.#scroller = host;
    this.#spacer = document.createElement("div");
    this.#spacer.className = "tail-space";
    host.append(this.#spacer);
    const { signal } = this.#abort;
    host.addEventListener("scroll", () => this.#scrolled(), { passive: true, signal });
    host.addEventListener("click", (event) => this.#pick(event.target), { signal });
    host.addEventListener(
      "keydown",
      (event) => {
        if (event.key === "Enter") this.#pick(event.target);
      },
      { signal },
    );
    this.#resize = new ResizeObserver(() => this.#layout());
    this.#resize.observe(host);
    this.#layout();
  }

  /** Rows that are kept, those that wait included. */
  get kept(): number {
    return Math.min(this.#total, this.#options.capacity) + (this.#later?.length ?? 0);
  }

  /** True while new rows are shown as they come. */
  get isFollowing(): boolean {
    return this.#following;
  }

  /** Adds a row. */
  push(raw: string): void {
    this.#rate += 1;
    if (this.#later === undefined) this.#keep(raw);
    else if (this.#later.length < this.#options.capacity) this.#later.push(raw);
    else {
      this.#later[this.#missed % this.#options.capacity] = raw;
      this.#missed += 1;
    }
    this.#schedule();
  }

  /** Shows new rows again. */
  follow(): void {
    this.#setFollowing(true);
    this.#paint();
  }

  /** Keeps what is shown while new rows wait. */
  hold(): void {
    if (this.#following) this.#setFollowing(false);
  }

  /** Fills all visible rows again, for a changed filter or form. */
  refresh(): void {
    for (const row of this.#rows) row.seq = -1;
    this.#paint();
  }

  /** Removes all rows. */
  clear(): void {
    this.#raw = [];
    this.#total = 0;
    this.#later = undefined;
    this.#missed = 0;
    this.#selected = -1;
    this.#setFollowing(true);
    this.refresh();
  }

  /** Rows that are kept, newest first, until `visit` returns false. */
  *newest(): Generator<string> {
    const { capacity } = this.#options;
    for (let seq = this.#total - 1; seq >= Math.max(0, this.#total - capacity); seq -= 1) {
      yield this.#raw[seq % capacity]!;
    }
  }

  /** Ends all observers and timers. */
  destroy(): void {
    clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#abort.abort();
    this.#resize.disconnect();
    this.#spacer.remove();
  }

  #pick(target: EventTarget | null): void {
    const seq = (target as HTMLElement | null)?.closest<HTMLElement>("[data-seq]")?.dataset["seq"];
    if (seq === undefined) return;
    this.#selected = Number(seq);
    for (const row of this.#rows) row.element.classList.toggle("sel", row.seq === this.#selected);
    this.#options.onPick(this.#options.parse(this.#raw[Number(seq) % this.#options.capacity]!));
  }

  #keep(raw: string): void {
    this.#raw[this.#total % this.#options.capacity] = raw;
    this.#total += 1;
  }

  #setFollowing(following: boolean): void {
    this.#following = following;
    if (following && this.#later !== undefined) {
      const waiting = this.#later;
      // After an overflow the oldest waiting row is where the next one would be written.
      const start = this.#missed % Math.max(1, waiting.length);
      this.#later = undefined;
      this.#missed = 0;
      for (let i = 0; i < waiting.length; i += 1)
        this.#keep(waiting[(start + i) % waiting.length]!);
    } else if (!following && this.#later === undefined) {
      this.#later = [];
    }
    this.#options.onFollow(following, 0);
  }

  #schedule(): void {
    if (this.#timer !== 0 || this.#frame !== 0) return;
    const now = performance.now();
    const waitMs = this.#lastPaintMs + 1000 / this.#choosePaintHz(now) - now;
    const paint = (): void => {
      this.#timer = 0;
      this.#frame = requestAnimationFrame(() => {
        this.#frame = 0;
        this.#paint();
      });
    };
    if (waitMs <= 0) paint();
    else this.#timer = window.setTimeout(paint, waitMs);
  }

  #choosePaintHz(now: number): number {
    const elapsedMs = now - this.#rateAtMs;
    if (elapsedMs > RATE_MS) {
      this.#rateBefore = elapsedMs > 2 * RATE_MS ? 0 : this.#rate;
      this.#rateAtMs = now;
      this.#rate = 0;
    }
    if (hasReducedMotion()) return CALM_HZ;
    const rate = Math.max(this.#rate, this.#rateBefore);
    return PAINT_HZ.find(({ fromRows }) => rate >= fromRows)!.hz;
  }

  #scrolled(): void {
    const { scrollTop, clientHeight, scrollHeight } = this.#scroller;
    const isAtEnd = scrollTop + clientHeight >= scrollHeight - this.#options.rowPx;
    if (isAtEnd === this.#following) {
      // Our own scrolling while following.
      if (isAtEnd) return;
    } else {
      this.#setFollowing(isAtEnd);
    }
    this.#frame ||= requestAnimationFrame(() => {
      this.#frame = 0;
      this.#paint();
    });
  }

  #layout(): void {
    const count = Math.ceil(this.#scroller.clientHeight / this.#options.rowPx) + 2;
    while (this.#rows.length < count) {
      const element = document.createElement("div");
      element.className = "tail-row";
      element.hidden = true;
      element.tabIndex = -1;
      element.setAttribute("role", "row");
      this.#spacer.append(element);
      this.#rows.push({ element, seq: -1 });
    }
    this.refresh();
  }

  #paint(): void {
    const { capacity, rowPx } = this.#options;
    this.#lastPaintMs = performance.now();
    const end = this.#total;
    const begin = Math.max(0, end - capacity);
    const height = (end - begin) * rowPx;
    if (height !== this.#height) {
      this.#height = height;
      this.#spacer.style.height = `${height}px`;
    }
    const bottom = Math.max(0, height - this.#scroller.clientHeight);
    if (this.#following && this.#scroller.scrollTop !== bottom) this.#scroller.scrollTop = bottom;
    const top = this.#following ? bottom : this.#scroller.scrollTop;
    const first = begin + Math.max(0, Math.floor(top / rowPx));
    const count = this.#rows.length;
    for (let seq = first; seq < first + count; seq += 1) {
      this.#paintRow(this.#rows[seq % count]!, seq < end ? seq : -1, (seq - begin) * rowPx);
    }
    if (this.#later !== undefined) {
      this.#options.onFollow(false, this.#later.length + this.#missed);
    }
  }

  #paintRow(row: PooledRow, seq: number, y: number): void {
    if (seq === -1) {
      row.element.hidden = true;
      row.seq = -1;
      return;
    }
    if (row.seq !== seq) {
      const raw = this.#raw[seq % this.#options.capacity]!;
      this.#options.fill(row.element, this.#options.parse(raw), raw);
      row.element.dataset["seq"] = String(seq);
      row.element.dataset["row"] = "";
      row.element.classList.toggle("sel", seq === this.#selected);
      row.element.hidden = false;
      row.seq = seq;
    }
    row.element.style.transform = `translateY(${y}px)`;
  }
}
