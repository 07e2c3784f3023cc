// Who is at work: readers, so that files are not removed under those that will still open them; and writers.

/** Tickets, given out in order and given back in any. */
export class Leases {
  #oldest = 1;
  #next = 1;
  readonly #active = new Set<number>();

  /** Begins something; call the result when it is done. */
  begin(): () => void {
    const ticket = this.#next;
    this.#next += 1;
    this.#active.add(ticket);
    return () => {
      this.#active.delete(ticket);
    };
  }

  /** A mark of now: whatever is under way at this moment is done when `isPast` says so. */
  mark(): number {
    return this.#next;
  }

  /** Whether all that was under way at a mark is done. */
  isPast(mark: number): boolean {
    this.#oldest = this.#active.values().next().value ?? this.#next;
    return this.#oldest >= mark;
  }
}
