// Leases of readers and writers: files are not removed while a reader may still open them.

/** Leases, numbered in order and released in any order. */
export class Leases {
  #oldest = 1;
  #next = 1;
  readonly #active = new Set<number>();

  /** Takes a lease. Call the result to release it. */
  begin(): () => void {
    const ticket = this.#next;
    this.#next += 1;
    this.#active.add(ticket);
    return () => {
      this.#active.delete(ticket);
    };
  }

  /** A mark of this moment; `isPast` is true once all current leases are released. */
  mark(): number {
    return this.#next;
  }

  /** True if all leases that existed at a mark are released. */
  isPast(mark: number): boolean {
    this.#oldest = this.#active.values().next().value ?? this.#next;
    return this.#oldest >= mark;
  }
}
