// One instance of an HTTP guest: it handles one request at a time, on the calling thread.
import { GuestError } from "../errors.ts";
import { GuestExit, Wasi } from "../guest/wasi.ts";
import { FUEL_EXPORT, START_EXPORT } from "../metering/meter-module.ts";
import { WASI_MODULE } from "../module/abi.ts";
import { GuestHost } from "./guest-host.ts";
import { GuestMemory } from "./guest-memory.ts";
import type { GuestEnvironment, GuestMessages, GuestVerdict } from "./guest-messages.ts";
import { HANDLER_MODULE, READ_BODY } from "./http-abi.ts";
import type { HttpModule } from "./http-module.ts";

/** An instance with more memory is not kept for the next request, unless it needs half as much to start. */
const KEPT_MEMORY_BYTES_MAX = 8 * 1024 * 1024;
/** Units of a call of a WASI function. */
const WASI_UNITS = 200;

interface GuestExports {
  memory: WebAssembly.Memory;
  handle_request: () => bigint;
  handle_response: (context: number, isError: number) => void;
  _initialize?: () => void;
  _start?: () => void;
  [START_EXPORT]?: () => void;
  [FUEL_EXPORT]: WebAssembly.Global;
}

type Handler<Args extends unknown[], Result> = (...args: Args) => Result | Promise<Result>;

/**
 * An instance. A call that fails throws, or rejects with, a GuestError; the instance is then broken. Calls of a module that
 * imports `read_body` return promises, those of others do not.
 */
export class HttpGuest {
  /** Bytes of its memory that its pool has accounted for. */
  accountedBytes = 0;
  readonly #host: GuestHost;
  readonly #memory: GuestMemory;
  readonly #handleRequest: Handler<[], bigint>;
  readonly #handleResponse: Handler<[number, number], void>;
  #isBroken = false;
  readonly #keptBytesMax: number;

  /** Creates an instance and runs its start functions. Throws a GuestError. */
  constructor(module: HttpModule, environment: GuestEnvironment) {
    const host = new GuestHost(environment);
    this.#host = host;
    const wasi = new Wasi(0, {
      onText: (bytes) => host.print(bytes),
      charge: (units) => host.charge(units),
    });
    const exports = instantiate(module, host, wasi);
    wasi.bind(exports.memory);
    this.#memory = new GuestMemory(exports.memory);
    host.bind(this.#memory, exports[FUEL_EXPORT]);
    this.#handleRequest = module.readsBody
      ? WebAssembly.promising(exports.handle_request)
      : exports.handle_request;
    this.#handleResponse = module.readsBody
      ? WebAssembly.promising(exports.handle_response)
      : exports.handle_response;
    this.#start(exports);
    this.#keptBytesMax = Math.max(KEPT_MEMORY_BYTES_MAX, this.#memory.byteLength * 2);
  }

  /** True if the instance can serve another request. */
  get isReusable(): boolean {
    return !this.#isBroken && this.#memory.byteLength <= this.#keptBytesMax;
  }

  /** Bytes of its linear memory. */
  get memoryBytes(): number {
    return this.#memory.byteLength;
  }

  /** Units of fuel that the last call used. */
  get fuelUsed(): number {
    return this.#host.fuelUsed;
  }

  /** The features that the guest has enabled for the current request. */
  get features(): number {
    return this.#host.features;
  }

  /** Number of fields that the guest tried to change during the current request although it cannot. */
  get ignoredFields(): number {
    return this.#host.ignoredFields;
  }

  /** The request body that the guest has written, or undefined if it has not. */
  get requestBody(): Buffer | undefined {
    return this.#host.requestBody;
  }

  /** The response body that the guest has written, or undefined if it has not. */
  get responseBody(): Buffer | undefined {
    return this.#host.responseBody;
  }

  /** Calls `handle_request`. */
  handleRequest(messages: GuestMessages): GuestVerdict | Promise<GuestVerdict> {
    this.#host.beginRequest(messages);
    try {
      return this.#settle(this.#handleRequest(), readVerdict);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Calls `handle_response`; also for a request whose `handle_request` this instance has not seen. */
  handleResponse(messages: GuestMessages, context: number, isError: boolean): void | Promise<void> {
    this.#host.beginResponse(messages);
    try {
      return this.#settle(this.#handleResponse(context, isError ? 1 : 0), readNothing);
    } catch (error) {
      throw this.#fail(error);
    }
  }

  /** Ends the request: the messages are not used any more. */
  endRequest(): void {
    this.#host.end();
  }

  #settle<Returned, Result>(
    returned: Returned | Promise<Returned>,
    read: (returned: Returned) => Result,
  ): Result | Promise<Result> {
    if (!(returned instanceof Promise)) return this.#finish(returned, read);
    return returned
      .then((value) => this.#finish(value, read))
      .catch((error: unknown) => {
        throw this.#fail(error);
      });
  }

  #finish<Returned, Result>(returned: Returned, read: (returned: Returned) => Result): Result {
    this.#host.endCall();
    this.#host.flushPrinted();
    return read(returned);
  }

  #start(exports: GuestExports): void {
    this.#host.beginStart();
    try {
      exports[START_EXPORT]?.();
      // A command's `_start` also initializes; a library has `_initialize` instead.
      if (exports._start !== undefined) exports._start();
      else exports._initialize?.();
    } catch (error) {
      if (!(error instanceof GuestExit) || error.exitCode !== 0) throw this.#fail(error);
    }
    this.#host.flushPrinted();
    this.#host.endStart();
  }

  #fail(error: unknown): GuestError {
    this.#isBroken = true;
    // A runtime writes there why it gives up.
    this.#host.flushPrinted();
    if (error instanceof GuestError) return error;
    if (this.#host.isFuelSpent)
      return new GuestError("fuel-limit", "The guest used all of its fuel.");
    if (error instanceof GuestExit)
      return new GuestError("exited", `The guest exited with code ${error.exitCode}.`);
    const reason = error instanceof Error ? error.message : String(error);
    return new GuestError("trapped", `The guest trapped: ${reason}`);
  }
}

function instantiate(module: HttpModule, host: GuestHost, wasi: Wasi): GuestExports {
  const handler: Record<string, unknown> = host.createImports();
  if (module.readsBody)
    handler[READ_BODY] = new WebAssembly.Suspending(handler[READ_BODY] as () => unknown);
  // Most modules import none of WASI, whose functions would be most of an instance's memory.
  const usesWasi = module.imports.some((name) => name.startsWith(`${WASI_MODULE}.`));
  const imports = {
    [HANDLER_MODULE]: handler,
    ...(usesWasi ? { [WASI_MODULE]: chargeCalls(wasi.createImports(), host) } : {}),
  };
  try {
    const { exports } = new WebAssembly.Instance(module.compiled, imports);
    return exports as unknown as GuestExports;
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new GuestError("trapped", `The module cannot be instantiated: ${reason}`);
  }
}

function chargeCalls(
  functions: Record<string, (...args: never[]) => number>,
  host: GuestHost,
): Record<string, (...args: never[]) => number> {
  return Object.fromEntries(
    Object.entries(functions).map(([name, run]) => [
      name,
      (...args: never[]) => {
        host.charge(WASI_UNITS);
        return run(...args);
      },
    ]),
  );
}

function readNothing(): void {}

const CONTINUE: GuestVerdict = { next: true, context: 0 };

function readVerdict(result: bigint): GuestVerdict {
  if (result === 1n) return CONTINUE;
  const next = Number(BigInt.asUintN(32, result));
  if (next > 1)
    throw new GuestError(
      "invalid-result",
      `handle_request returned next=${next}; only 0 and 1 are defined.`,
    );
  return { next: next === 1, context: Number(BigInt.asIntN(32, result >> 32n)) };
}
