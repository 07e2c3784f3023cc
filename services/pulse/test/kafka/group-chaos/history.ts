// Records the processing of a topic's messages by a group, and checks the guarantees.

const placesOfLife = 1_000_000;

/** Judges from what members were told; messages are numbered by partition and offset without gaps. */
export class History {
  /** Number of times each message was processed, by partition and offset. */
  readonly #processed: number[][];
  /** The highest commit that the broker has acknowledged, by partition. */
  readonly #committed: number[];
  readonly violations: string[] = [];
  /** The generation that a member was last let into. */
  #generation = 0;
  /** Counts the group's lives: an empty group is forgotten, and its numbers begin anew. */
  #life = 0;
  /** The newest generation that has committed. */
  #newest = 0;
  commits = 0;
  rebalances = 0;
  refusedCommits = 0;

  constructor(partitions: number) {
    this.#processed = Array.from({ length: partitions }, () => []);
    this.#committed = Array.from({ length: partitions }, () => 0);
  }

  /** The committed offset when a member starts. */
  readCommitted(): number[] {
    return [...this.#committed];
  }

  /** A member was told where to begin; `before` is what was committed when it asked. */
  begin(member: string, partition: number, offset: number, before: readonly number[]): void {
    if (offset < before[partition]!) {
      this.#blame(`${member} begins ${partition} at ${offset}, committed was ${before[partition]}`);
    }
  }

  process(member: string, partition: number, offset: number, value: string): void {
    if (value !== `${partition}:${offset}`) {
      this.#blame(`${member} read "${value}" at ${partition}:${offset}`);
    }
    const counts = this.#processed[partition]!;
    counts[offset] = (counts[offset] ?? 0) + 1;
  }

  /** A member was let in. Gives the generation's place among those of all the group's lives. */
  enter(generation: number): number {
    if (generation < this.#generation) this.#life++;
    this.#generation = generation;
    return this.#life * placesOfLife + generation;
  }

  /** The place of the newest generation that has committed, for a commit that is being sent. */
  readNewest(): number {
    return this.#newest;
  }

  /** A commit was acknowledged; `newest` is what `readNewest` gave when it was sent. */
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
    for (const [partition, offset] of offsets) {
      for (let at = this.#committed[partition]!; at < offset; at++) {
        if (this.#processed[partition]![at] === undefined) {
          this.#blame(`${partition}:${at} was committed and never processed`);
          break;
        }
      }
      this.#committed[partition] = Math.max(this.#committed[partition]!, offset);
    }
  }

  get committedTotal(): number {
    return this.#committed.reduce((sum, offset) => sum + offset, 0);
  }

  /** Whether everything up to `ends` was committed. */
  isDone(ends: readonly number[]): boolean {
    return ends.every((end, partition) => this.#committed[partition]! >= end);
  }

  /** Number of messages processed, and number of repetitions. */
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
