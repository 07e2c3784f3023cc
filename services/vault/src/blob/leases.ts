// Leases of readers and writers: files are not removed while a reader may still open them.

/** Leases, numbered in order and released in any order. */
export class Leases {
  #oldest = 1;
  #next = 1;
  readonly #active = new Set<number>();

  /** Starts a lease and returns the function that releases it. */
  begin(): () => void {
    const ticket = this.#next;
    this.#next += 1;
    this.#active.add(ticket);
    return () => {
      this.#active.delete(ticket);
    };
  }

  /** Returns a mark for `isPast`, which is true once all leases held now are released. */
  mark(): number {
    return this.#next;
  }

  /** True if all leases that existed at a mark are released. */
  isPast(mark: number): boolean {
    this.#oldest = this.#active.values().next().value ?? this.#next;
    return this.#oldest >= mark;
  }
}
