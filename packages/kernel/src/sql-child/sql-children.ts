// The children that answer questions in SQL, which are killed when they exceed a limit.
//
//   ask ─► waits for its turn ─► child ─► rows … ─► done
//                                 │  ▲
//                                 ▼  │ rows of tables, a batch at a time
//                                tables
import { fork, type ChildProcess } from "node:child_process";
import { fileURLToPath } from "node:url";
import { FairTurns, TurnRefusal } from "../turns/index.ts";
import { type Ask, type ChildRequest, type ChildResponse, MEMORY_SIGNAL } from "./messages.ts";
import type {
  SqlAnswer,
  SqlDatabase,
  SqlLimits,
  SqlQuestion,
  SqlTable,
  SqlValue,
} from "./question.ts";
import { SqlError } from "./sql-error.ts";

/** Time for the start of a child, which takes long on a machine that is busy with other work. */
const START_MS = 60_000;
/** Heap of a child: the rows of an answer that have not been sent, and the program. */
const HEAP_MIB = 96;
/** Default time after which an idle child ends: each takes about 50 MB. */
const IDLE_MS = 60_000;
const WAITING_MAX = 32;
const WAIT_MS = 60_000;
/** Variables that a child has of this process: no secret is among them. */
const VARIABLES = ["NODE_COMPILE_CACHE", "SystemRoot"];

/** The end of a question; `killed` by a limit, `aborted` by its author. */
export type SqlOutcome = "answered" | "refused" | "killed" | "aborted" | "failed";

/** Options of {@link SqlChildren}. */
export interface SqlChildrenOptions {
  /** Children at the same time. A tenant has one at most while another waits. */
  readonly children: number;
  readonly limits: SqlLimits;
  /** Questions that may wait. Default: 32. */
  readonly waitingMax?: number;
  /** Maximum wait in ms. Default: a minute. */
  readonly waitMs?: number;
  /** Time in ms after which an idle child ends. Default: a minute. */
  readonly idleMs?: number;
  /** Called at the end of each question that has begun. */
  readonly onFinished?: (outcome: SqlOutcome) => void;
}

interface IdleChild {
  readonly child: ChildProcess;
  readonly timer: NodeJS.Timeout;
}

/**
 * Answers questions in SQL with child processes, which start with the first question. They have the lowest priority after a
 * quarter of a second of the processor, and none of the variables of this process.
 */
export class SqlChildren {
  readonly #options: SqlChildrenOptions;
  readonly #turns: FairTurns;
  readonly #idle: IdleChild[] = [];
  readonly #running = new Set<RunningStatement>();
  readonly #ending = new Set<Promise<void>>();
  #isClosed = false;

  constructor(options: SqlChildrenOptions) {
    this.#options = options;
    const { children, waitingMax = WAITING_MAX, waitMs = WAIT_MS } = options;
    this.#turns = new FairTurns({ places: children, waitingMax, waitMs });
  }

  /** Questions that wait for a child. */
  get waiting(): number {
    return this.#turns.waiting;
  }

  /** Child processes that exist. */
  get children(): number {
    return this.#running.size + this.#idle.length;
  }

  /**
   * Answers a question. Rejects with a {@link SqlError}, with the error of a table's rows, and with the reason of `signal` when
   * it aborts. `prepare` is called when it is the question's turn: it returns the database, and what frees it afterwards.
   */
  async ask(
    question: Omit<SqlQuestion, "database">,
    prepare: () => Promise<PreparedDatabase> | PreparedDatabase,
    signal?: AbortSignal,
  ): Promise<SqlAnswer> {
    const release = await this.#takeTurn(question.tenant, signal);
    let prepared: PreparedDatabase | undefined;
    try {
      prepared = await prepare();
      signal?.throwIfAborted();
      if (this.#isClosed) throw closed();
      return await this.#run({ ...question, database: prepared.database }, prepared, signal);
    } finally {
      await prepared?.release?.();
      release();
    }
  }

  /** Ends all questions and children. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#turns.end();
    for (const running of this.#running) running.fail(closed(), "aborted");
    for (const { child, timer } of this.#idle.splice(0)) {
      clearTimeout(timer);
      this.#end(child);
    }
    await Promise.all(this.#ending);
  }

  async #takeTurn(tenant: string, signal: AbortSignal | undefined): Promise<() => void> {
    try {
      return await this.#turns.take(tenant, signal);
    } catch (error) {
      if (!(error instanceof TurnRefusal)) throw error;
      throw new SqlError("busy", "Too many questions wait.", { cause: error });
    }
  }

  async #run(
    question: SqlQuestion,
    prepared: PreparedDatabase,
    signal: AbortSignal | undefined,
  ): Promise<SqlAnswer> {
    const idle = this.#idle.pop();
    clearTimeout(idle?.timer);
    const child = idle?.child ?? startChild();
    const limits = { ...this.#options.limits, ...question.limits };
    const running = new RunningStatement(child, question, limits);
    const onAbort = (): void => running.fail(signal?.reason, "aborted");
    signal?.addEventListener("abort", onAbort);
    prepared.onStarted?.((error) => running.fail(error, "killed"));
    this.#running.add(running);
    try {
      return await running.answer;
    } finally {
      this.#running.delete(running);
      signal?.removeEventListener("abort", onAbort);
      this.#options.onFinished?.(running.outcome);
      if (running.isReusable && !this.#isClosed) this.#keep(child);
      else this.#end(child);
      if (!running.isReusable) await Promise.all(this.#ending);
    }
  }

  #keep(child: ChildProcess): void {
    const remove = (): void => {
      const index = this.#idle.findIndex((one) => one.child === child);
      if (index >= 0) clearTimeout(this.#idle.splice(index, 1)[0]!.timer);
    };
    const timer = setTimeout(() => {
      remove();
      this.#end(child);
    }, this.#options.idleMs ?? IDLE_MS).unref();
    child.removeAllListeners();
    child.once("error", remove);
    child.once("exit", remove);
    child.unref();
    child.channel?.unref();
    this.#idle.push({ child, timer });
  }

  // A child in a statement ends by this signal only.
  #end(child: ChildProcess): void {
    child.removeAllListeners();
    child.on("error", () => undefined);
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return;
    const ended = new Promise<void>((resolve) => {
      child.once("exit", () => resolve());
    });
    child.ref();
    this.#ending.add(ended);
    void ended.then(() => this.#ending.delete(ended));
    child.kill("SIGKILL");
  }
}

/** The database of a question whose turn it is. */
export interface PreparedDatabase {
  readonly database: SqlDatabase;
  /** Receives the function that ends the question with an error. */
  readonly onStarted?: (end: (error: Error) => void) => void;
  /** Called when the child does not use the database any longer. */
  readonly release?: () => Promise<void> | void;
}

function startChild(): ChildProcess {
  if (process.versions["bun"] !== undefined) {
    throw new SqlError("failed", "SQL needs Node: the SQLite of Bun has no authorizer.");
  }
  const env = Object.fromEntries(
    VARIABLES.flatMap((name) =>
      process.env[name] === undefined ? [] : [[name, process.env[name]]],
    ),
  );
  return fork(fileURLToPath(new URL("./statement-child.ts", import.meta.url)), [], {
    env,
    execArgv: [`--max-old-space-size=${HEAP_MIB}`],
    serialization: "advanced",
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
}

function closed(): SqlError {
  return new SqlError("busy", "The service is stopping.");
}

/** A question on its child. */
class RunningStatement {
  readonly answer: Promise<SqlAnswer>;
  readonly #child: ChildProcess;
  readonly #question: SqlQuestion;
  readonly #timeMs: number;
  #timer: NodeJS.Timeout;
  readonly #resolve: (answer: SqlAnswer) => void;
  readonly #reject: (error: unknown) => void;
  readonly #rows: SqlAnswer["rows"][number][] = [];
  #table: AsyncIterator<readonly (readonly SqlValue[])[]> | undefined;
  #hasEnded = false;
  outcome: SqlOutcome = "answered";
  /** True if the child can answer another question. */
  isReusable = false;

  constructor(child: ChildProcess, question: SqlQuestion, limits: SqlLimits) {
    this.#child = child;
    this.#question = question;
    const { promise, resolve, reject } = Promise.withResolvers<SqlAnswer>();
    this.answer = promise;
    this.#resolve = resolve;
    this.#reject = reject;
    child.removeAllListeners();
    child.ref();
    child.channel?.ref();
    child.on("message", (response: ChildResponse) => this.#receive(response));
    child.once("error", (error) => this.fail(new SqlError("failed", error.message), "failed"));
    child.once("exit", (code, signal) => this.#onExit(code, signal));
    this.#timeMs = limits.timeMs;
    this.#timer = setTimeout(() => {
      const message = `The process of the statement has not started in ${START_MS / 1_000} s.`;
      this.fail(new SqlError("failed", message), "failed");
    }, START_MS);
    this.#send(outline(question, limits));
  }

  /** Ends the question with an error, if it has not ended. */
  fail(error: unknown, outcome: SqlOutcome): void {
    if (this.#hasEnded) return;
    this.#finish(outcome);
    this.#reject(error);
  }

  #limitTime(): void {
    const message = `The statement has run for more than ${this.#timeMs / 1_000} s.`;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => {
      this.fail(new SqlError("limit", message, { limit: "time" }), "killed");
    }, this.#timeMs);
  }

  #finish(outcome: SqlOutcome): void {
    this.#hasEnded = true;
    this.outcome = outcome;
    clearTimeout(this.#timer);
    this.#closeTable();
  }

  #send(request: ChildRequest): void {
    // It may have ended: then its exit is reported.
    if (this.#child.connected) this.#child.send(request, () => undefined);
  }

  #receive(response: ChildResponse): void {
    if (this.#hasEnded) return;
    switch (response.type) {
      case "begun":
        this.#limitTime();
        return;
      case "fill":
        this.#closeTable();
        this.#table = openTable(this.#findTable(response.table));
        return;
      case "next":
        void this.#sendRows();
        return;
      case "rows":
        this.#rows.push(...response.rows);
        return;
      case "done": {
        const { type: _type, isSpent, ...answer } = response;
        this.isReusable = !isSpent;
        this.#finish("answered");
        this.#resolve({ ...answer, rows: this.#rows });
        return;
      }
      case "failed": {
        const { kind, message, limit, position } = response;
        this.isReusable = !response.isSpent;
        const outcome =
          kind === "limit"
            ? "killed"
            : kind === "failed" || kind === "damaged"
              ? "failed"
              : "refused";
        this.fail(new SqlError(kind, message, { limit, position }), outcome);
        return;
      }
      default:
        response satisfies never;
    }
  }

  #findTable(name: string): SqlTable {
    const { database } = this.#question;
    const tables = database.kind === "tables" ? database.tables : [];
    return tables.find((table) => table.name === name)!;
  }

  async #sendRows(): Promise<void> {
    try {
      const batch = await this.#table?.next();
      if (this.#hasEnded) return;
      this.#send({ type: "rows", rows: batch?.done === true ? undefined : batch?.value });
    } catch (error) {
      this.fail(error, "failed");
    }
  }

  #closeTable(): void {
    const table = this.#table;
    this.#table = undefined;
    table?.return?.().catch(() => undefined);
  }

  // V8 aborts the process when its heap is full.
  #onExit(code: number | null, signal: string | null): void {
    const isAborted = signal === "SIGABRT" || signal === "SIGTRAP" || code === 134;
    const isMemory = signal === MEMORY_SIGNAL || isAborted;
    if (isMemory) {
      const error = new SqlError("limit", "The statement needs too much memory.", {
        limit: "memory",
      });
      this.fail(error, "killed");
    } else {
      this.fail(
        new SqlError("failed", `the child has ended: ${signal ?? `code ${code}`}`),
        "failed",
      );
    }
  }
}

async function* openTable(
  table: SqlTable,
): AsyncGenerator<readonly (readonly SqlValue[])[], undefined> {
  yield* table.rows();
}

function outline({ sql, parameters, database, write }: SqlQuestion, limits: SqlLimits): Ask {
  const asked =
    database.kind === "tables"
      ? {
          kind: database.kind,
          tables: database.tables.map(({ name, columns }) => ({ name, columns })),
        }
      : database;
  return { type: "ask", sql, parameters, database: asked, write, limits };
}
