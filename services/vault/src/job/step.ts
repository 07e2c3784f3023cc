// One step of a job: operations on objects, collected until all of them can be committed together with the progress.
import type { JobLine } from "../model/job.ts";
import { S3Error } from "../model/s3-error.ts";
import { StoreError } from "../model/store-error.ts";
import type { Operation, OperationResult } from "../transaction/operations.ts";
import type { Submit } from "../transaction/writer.ts";

const MESSAGE_CHARACTERS_MAX = 500;

/** An operation of one object that waits for the commit. */
export interface CollectedOperation {
  /** Place of its object in the step. */
  readonly index: number;
  readonly operation: Operation;
}

interface Waiter extends CollectedOperation {
  readonly resolve: (value: never) => void;
  readonly reject: (error: unknown) => void;
}

/** Collects the operations of a step. */
export class Step {
  readonly #waiters: Waiter[] = [];
  readonly #failures = new Map<number, unknown>();
  readonly #works: Promise<void>[] = [];
  #open: number;
  readonly #collected = Promise.withResolvers<void>();

  /** Starts `work` for each of `count` objects, with the function that it commits with. */
  constructor(count: number, work: (index: number, submit: Submit) => Promise<unknown>) {
    this.#open = count;
    if (count === 0) this.#collected.resolve();
    for (let index = 0; index < count; index += 1) this.#works.push(this.#run(index, work));
  }

  /** Resolves when each object waits for its commit, or has ended without one. */
  async collect(): Promise<readonly CollectedOperation[]> {
    await this.#collected.promise;
    return this.#waiters;
  }

  /** Objects that have failed before the commit, with their error. */
  get failures(): ReadonlyMap<number, unknown> {
    return this.#failures;
  }

  /** Passes the outcomes of the commit on, in the order of `collect`, and waits for the end of all work. */
  async settle(outcomes: readonly PromiseSettledResult<unknown>[]): Promise<void> {
    for (const [at, { resolve, reject }] of this.#waiters.entries()) {
      const outcome = outcomes[at]!;
      if (outcome.status === "fulfilled") resolve(outcome.value as never);
      else reject(outcome.reason);
    }
    await Promise.all(this.#works);
  }

  async #run(
    index: number,
    work: (index: number, submit: Submit) => Promise<unknown>,
  ): Promise<void> {
    let isWaiting = false;
    const submit: Submit = <T extends Operation>(operation: T) => {
      // Its first commit is over, and with it the step.
      if (isWaiting)
        return Promise.reject(
          new StoreError("OperationAborted", "The object has changed meanwhile"),
        );
      isWaiting = true;
      const waiting = new Promise<OperationResult<T>>((resolve, reject) => {
        this.#waiters.push({ index, operation, resolve, reject });
      });
      this.#arrive();
      return waiting;
    };
    try {
      await work(index, submit);
    } catch (error) {
      if (!isWaiting) this.#failures.set(index, error);
    }
    if (!isWaiting) this.#arrive();
  }

  #arrive(): void {
    this.#open -= 1;
    if (this.#open === 0) this.#collected.resolve();
  }
}

/** The line of an object that has failed before the commit. */
export function describeFailure(key: string, version: string | undefined, error: unknown): JobLine {
  const isKnown = error instanceof S3Error || error instanceof StoreError;
  const code = isKnown ? error.code : "InternalError";
  const message = isKnown ? error.message : "The store has failed";
  return {
    key,
    ...(version === undefined ? {} : { version_id: version }),
    outcome: "failed",
    code,
    message: message.slice(0, MESSAGE_CHARACTERS_MAX),
  };
}
