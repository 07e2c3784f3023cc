// Records the processing of a topic's messages by a group, and checks the guarantees.

const placesOfLife = 1_000_000;

/** Checks the responses that members received; messages are numbered by partition and offset without gaps. */
export class History {
  /** Number of times each message was processed, by partition and offset. */
  readonly #processed: number[][];
  /** The highest offset that the broker is known to hold, by partition. */
  readonly #committed: number[];
  readonly violations: string[] = [];
  /** The generation of the last successful join. */
  #generation = 0;
  /** Number of restarts of the generation: the broker removes an empty group, and a new one counts from the start. */
  #life = 0;
  /** Position of the newest generation that has committed. */
  #newest = 0;
  commits = 0;
  rebalances = 0;
  refusedCommits = 0;

  constructor(partitions: number) {
    this.#processed = Array.from({ length: partitions }, () => []);
    this.#committed = Array.from({ length: partitions }, () => 0);
  }

  /** Returns the committed offset of each partition, before which a starting member must not begin. */
  readCommitted(): number[] {
    return [...this.#committed];
  }

  /** Checks the offset at which a member begins; `before` is the result of `readCommitted` before its request. */
  begin(member: string, partition: number, offset: number, before: readonly number[]): void {
    if (offset < before[partition]!) {
      this.#blame(`${member} begins ${partition} at ${offset}, committed was ${before[partition]}`);
    }
    // The member that committed it may have died before its answer arrived.
    this.#raise(partition, offset);
  }

  process(member: string, partition: number, offset: number, value: string): void {
    if (value !== `${partition}:${offset}`) {
      this.#blame(`${member} read "${value}" at ${partition}:${offset}`);
    }
    const counts = this.#processed[partition]!;
    counts[offset] = (counts[offset] ?? 0) + 1;
  }

  /** Records a successful join. Returns the position of its generation in the order of all generations. */
  enter(generation: number): number {
    if (generation < this.#generation) this.#life++;
    this.#generation = generation;
    return this.#life * placesOfLife + generation;
  }

  /** Returns the position of the newest generation that has committed; read before a commit is sent. */
  readNewest(): number {
    return this.#newest;
  }

  /** Checks an acknowledged commit; `newest` is the result of `readNewest` when it was sent. */
  commit(
    member: string,
    place: number,
    offsets: readonly (readonly [partition: number, offset: number])[],
    newest: number,
  ): void {
    if (place < newest) {
      const [own, later] = [place, newest].map((one) => one % placesOfLife);
      this.#blame(`${member} committed in generation ${own} after one of ${later}`);
    }
    this.#newest = Math.max(this.#newest, place);
    this.commits++;
    for (const [partition, offset] of offsets) this.#raise(partition, offset);
  }

  /** Notes that the broker holds this offset, and checks that all before it was processed. */
  #raise(partition: number, offset: number): void {
    for (let at = this.#committed[partition]!; at < offset; at++) {
      if (this.#processed[partition]![at] === undefined) {
        this.#blame(`${partition}:${at} was committed and never processed`);
        break;
      }
    }
    this.#committed[partition] = Math.max(this.#committed[partition]!, offset);
  }

  get committedTotal(): number {
    return this.#committed.reduce((sum, offset) => sum + offset, 0);
  }

  /** True if everything up to `ends` was committed. */
  isDone(ends: readonly number[]): boolean {
    return ends.every((end, partition) => this.#committed[partition]! >= end);
  }

  /** Counts the processed messages and their repetitions. */
  count(): { messages: number; repetitions: number } {
    let messages = 0;
    let repetitions = 0;
    for (const counts of this.#processed) {
      for (const count of counts) {
        messages++;
        repetitions += (count ?? 0) - 1;
      }
    }
    return { messages, repetitions };
  }

  #blame(text: string): void {
    if (this.violations.length < 20) this.violations.push(text);
  }
}
