// The writer thread: commits groups of operations, one transaction per group. A refused operation leaves nothing in it.
import { statSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { StoreError } from "../model/store-error.ts";
import { applyOperation, type Operation } from "./operations.ts";
import { MarkFile } from "../index/mark.ts";
import { restartLog } from "../index/restart-log.ts";
import {
  findRestartBytes,
  INDEX_BUSY_MS,
  openIndexWriter,
  type IndexConnection,
} from "../index/schema.ts";
import { DamagedRowError } from "../index/seal.ts";
import { type Outcome, WriterContext } from "./writer-context.ts";
import type { GroupRequest, GroupResponse, WriterData, WriterReady } from "./writer-messages.ts";

const SQLITE_FULL = 13;

/** An operation was refused after it had changed something. */
class RefusedHalfway extends Error {
  override readonly name = "RefusedHalfway";
}

/** Commits groups. After a failure that leaves the disk in doubt, it refuses everything until the next start. */
class GroupWriter {
  readonly #connection: IndexConnection;
  readonly #context: WriterContext;
  readonly #walPath: string;
  readonly #restartBytes: number;
  readonly #mark: MarkFile;
  #stopped: StoreError | undefined;

  constructor(connection: IndexConnection, context: WriterContext, path: string) {
    this.#connection = connection;
    this.#context = context;
    this.#walPath = `${path}-wal`;
    this.#restartBytes = findRestartBytes(context.limits.logBytesMax);
    this.#mark = new MarkFile(path, context.readPosition());
  }

  close(): void {
    this.#connection.close();
    this.#mark.close();
  }

  run(request: GroupRequest): GroupResponse {
    const begun = performance.now();
    const failure = this.#stopped;
    const { outcomes, isCommitted } =
      failure === undefined
        ? this.#commit(request)
        : { outcomes: request.operations.map(() => describeError(failure)), isCommitted: false };
    const stopped = this.#stopped;
    return {
      outcomes,
      isCommitted,
      sequence: this.#context.sequence,
      totals: { ...this.#context.totals },
      commitMs: performance.now() - begun,
      stopped: stopped?.message,
    };
  }

  /** After the answer to a group: restarts a WAL that has grown too long, without waiting for its readers. */
  tidy(): void {
    if (this.#stopped !== undefined) return;
    const { size } = statSync(this.#walPath, { throwIfNoEntry: false }) ?? { size: 0 };
    if (size <= this.#restartBytes) return;
    try {
      restartLog(this.#connection.database, INDEX_BUSY_MS);
    } catch (error) {
      // On a full disk the WAL keeps its length; any other error stops writes.
      this.#judge(error);
    }
  }

  #commit({ operations, commit, sequence }: GroupRequest): {
    outcomes: Outcome[];
    isCommitted: boolean;
  } {
    const { database } = this.#connection;
    try {
      const outcomes = this.#applyAll(operations, sequence);
      this.#context.saveCounts();
      this.#context.saveCommit(commit);
      this.#connection.sql("commit").run();
      this.#mark.save({ commitGeneration: this.#context.generation, commit });
      return { outcomes, isCommitted: true };
    } catch (error) {
      const failure = this.#judge(error);
      if (database.isTransaction) database.exec("rollback");
      if (this.#stopped === undefined) this.#context.reload();
      return { outcomes: operations.map(() => describeError(failure)), isCommitted: false };
    }
  }

  // A savepoint copies every page that is changed after it, and most refused operations change nothing. So groups run
  // without savepoints, and only a group in which a refused operation had changed something is repeated with them.
  #applyAll(operations: readonly Operation[], sequence: number): Outcome[] {
    try {
      this.#begin(sequence);
      return this.#applyEach(operations, (operation) => this.#apply(operation));
    } catch (error) {
      if (!(error instanceof RefusedHalfway)) throw error;
    }
    this.#connection.sql("rollback").run();
    this.#context.reload();
    this.#begin(sequence);
    return this.#applyEach(operations, (operation) => this.#applyInSavepoint(operation));
  }

  // The end of a step of a job depends on the outcomes before it.
  #applyEach(
    operations: readonly Operation[],
    apply: (operation: Operation) => Outcome,
  ): Outcome[] {
    const outcomes: Outcome[] = [];
    this.#context.outcomes = outcomes;
    for (const operation of operations) outcomes.push(apply(operation));
    return outcomes;
  }

  #begin(sequence: number): void {
    this.#connection.sql("begin immediate").run();
    this.#context.sequence = sequence;
  }

  #apply(operation: Operation): Outcome {
    const changes = this.#countChanges();
    const { usage } = this.#context;
    const { revision } = usage;
    const totals = { ...this.#context.totals };
    try {
      return { value: applyOperation(this.#context, operation) };
    } catch (error) {
      const refused = this.#requireRefusal(error);
      const isChanged = usage.revision !== revision || this.#countChanges() !== changes;
      if (isChanged) throw new RefusedHalfway();
      Object.assign(this.#context.totals, totals);
      return describeError(refused);
    }
  }

  #applyInSavepoint(operation: Operation): Outcome {
    this.#connection.sql("savepoint operation").run();
    this.#context.usage.beginSavepoint();
    const totals = { ...this.#context.totals };
    try {
      const value = applyOperation(this.#context, operation);
      this.#connection.sql("release operation").run();
      this.#context.usage.releaseSavepoint();
      return { value };
    } catch (error) {
      const refused = this.#requireRefusal(error);
      this.#connection.sql("rollback to operation").run();
      this.#connection.sql("release operation").run();
      this.#context.usage.undoSavepoint();
      Object.assign(this.#context.totals, totals);
      return describeError(refused);
    }
  }

  // A full disk may have ended the transaction implicitly: then the whole group is undone.
  #requireRefusal(error: unknown): StoreError {
    if (!(error instanceof StoreError) || !this.#connection.database.isTransaction) throw error;
    // Copies of the index must not decide differently: the damaged one is dropped, and replaced.
    if (error instanceof DamagedRowError && this.#context.limits.isReplicated === true) throw error;
    return error;
  }

  // Rows that this connection has ever changed.
  #countChanges(): unknown {
    return this.#connection.sql("select total_changes() as changes").get()?.["changes"];
  }

  // A full disk is survivable. Any other error leaves the disk in doubt: a failed sync is never retried.
  #judge(error: unknown): StoreError {
    const code = (error as { errcode?: unknown }).errcode;
    const cause = error instanceof Error ? error.message : String(error);
    if (typeof code === "number" && (code & 0xff) === SQLITE_FULL) {
      return new StoreError("InsufficientStorage", "There is not enough space left to store this");
    }
    this.#stopped = new StoreError(
      "InternalError",
      `The index cannot be written (${cause}); writes stop until the next start`,
    );
    return this.#stopped;
  }
}

function describeError(error: unknown): Outcome {
  const known =
    error instanceof StoreError ? error : new StoreError("InternalError", "unknown failure");
  return { code: known.code, message: known.message, details: known.details };
}

function start(): void {
  const port = parentPort;
  if (port === null) return;
  const { path, limits, generation } = workerData as WriterData;
  const connection = openIndexWriter(path, limits.logBytesMax);
  const context = new WriterContext(connection, limits, generation);
  const writer = new GroupWriter(connection, context, path);
  port.on("message", (request: GroupRequest | "close") => {
    if (request === "close") {
      writer.close();
      port.close();
      return;
    }
    port.postMessage(writer.run(request));
    writer.tidy();
  });
  port.postMessage({
    generation: context.generation,
    buckets: [...context.buckets.values()],
    totals: context.totals,
    commit: context.readCommit(),
    sequence: context.sequence,
    drivesBehind: context.readDrivesBehind(),
  } satisfies WriterReady);
}

start();
