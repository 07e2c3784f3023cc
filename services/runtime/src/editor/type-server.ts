// TypeScript's own language server as a child process: restarted if it ends, with the documents sent again.
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { Connection } from "./connection.ts";
import { ERROR_CODES, ResponseError } from "./protocol.ts";

/** The first version with a language server. */
const MAJOR_MIN = 7;
const RESTARTS_MAX = 5;
const RESTARTS_WITHIN_MS = 180_000;
const EXIT_MS = 2_000;

/** Options of the server. */
export interface TypeServerOptions {
  /** Path of `bin/tsc`. */
  readonly compiler: string;
  /** Parameters of `initialize`. */
  readonly initialize: object;
  readonly onRequest: (method: string, params: unknown, signal: AbortSignal) => unknown;
  readonly onNotification: (method: string, params: unknown) => void;
  /** Called when the server accepts documents: at the start and after each restart. */
  readonly onReady: (connection: Connection) => void;
  /** Called when it ended and is not started again. */
  readonly onFailure: (reason: string) => void;
}

/** Finds `bin/tsc` of the project's TypeScript, or of this installation if the project's has no language server. */
export function findCompiler(folder: string): string | undefined {
  for (const from of [join(folder, "x.js"), import.meta.url]) {
    try {
      const path = createRequire(from).resolve("typescript/package.json");
      const { version } = JSON.parse(readFileSync(path, "utf8")) as { version: string };
      if (Number.parseInt(version, 10) >= MAJOR_MIN) return join(dirname(path), "bin/tsc");
    } catch {
      // Not installed here.
    }
  }
  return undefined;
}

/** The child process and the conversation with it. */
export class TypeServer {
  readonly #options: TypeServerOptions;
  readonly #restarts: number[] = [];
  #child: ChildProcess | undefined;
  #connection: Connection | undefined;
  #ready: Promise<unknown>;
  #stopped = false;

  constructor(options: TypeServerOptions) {
    this.#options = options;
    this.#ready = this.#start();
    // Each request reports it.
    this.#ready.catch(() => {});
  }

  /** Resolves with the answer to `initialize`. */
  get ready(): Promise<unknown> {
    return this.#ready;
  }

  /** Process id of the child, while it runs. */
  get pid(): number | undefined {
    return this.#child?.pid;
  }

  /** Sends a request; one sent during a restart waits for it. */
  async request<Result>(method: string, params: unknown, signal?: AbortSignal): Promise<Result> {
    // Without a wait, requests stay in the order of the notifications around them.
    if (this.#connection === undefined) await this.#ready;
    const connection = this.#connection;
    if (connection === undefined) {
      throw new ResponseError(ERROR_CODES.requestFailed, "TypeScript does not run");
    }
    return connection.request<Result>(method, params, signal);
  }

  /** Sends a notification; during a restart it is dropped, as the documents are sent again. */
  notify(method: string, params: unknown): void {
    this.#connection?.notify(method, params);
  }

  /** Ends the child. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    child.once("exit", () => resolve());
    this.#connection?.notify("exit", null);
    child.stdin?.end();
    const timer = setTimeout(() => child.kill("SIGKILL"), EXIT_MS);
    await promise;
    clearTimeout(timer);
  }

  async #start(): Promise<unknown> {
    const child = spawn(process.execPath, [this.#options.compiler, "--lsp", "--stdio"], {
      stdio: ["pipe", "pipe", "ignore"],
    });
    this.#child = child;
    const connection = new Connection({
      input: child.stdout,
      output: child.stdin,
      onRequest: this.#options.onRequest,
      onNotification: this.#options.onNotification,
      onClose: () => child.kill("SIGKILL"),
    });
    child.once("error", () => connection.close());
    child.once("exit", () => {
      connection.close();
      this.#restart();
    });
    const answer = await connection.request("initialize", this.#options.initialize);
    connection.notify("initialized", {});
    this.#options.onReady(connection);
    this.#connection = connection;
    return answer;
  }

  #restart(): void {
    this.#connection = undefined;
    if (this.#stopped) return;
    const now = Date.now();
    this.#restarts.push(now);
    const recent = this.#restarts.filter((at) => now - at < RESTARTS_WITHIN_MS);
    if (recent.length > RESTARTS_MAX) {
      this.#options.onFailure(`TypeScript ended ${recent.length} times in three minutes`);
      return;
    }
    this.#ready = this.#start();
    this.#ready.catch(() => {});
  }
}
