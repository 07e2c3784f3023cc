// A second host of http-wasm guests, written from the page of the ABI alone: for comparison with that of the platform.

/** A message with its fields and its body: what a guest reads and changes. */
export interface HostMessage {
  fields: (readonly [name: string, value: string])[];
  body: Uint8Array;
}

/** The request and the response of one call. Text is latin1. */
export interface HostExchange {
  method: string;
  uri: string;
  readonly version: string;
  readonly source: string;
  status: number;
  readonly request: HostMessage;
  readonly response: HostMessage;
}

interface Exports {
  memory: { readonly buffer: ArrayBuffer };
  handle_request: () => bigint;
  handle_response: (context: number, isError: number) => void;
  _initialize?: () => void;
}

const BUFFER_RESPONSE = 2;
const FEATURES = 3;
const TRAILERS = 2;
const EOF = 1n << 32n;

/** One instance of a guest. A trap, of the guest or of a function that it calls, is thrown. */
export class SecondHost {
  /** Lines of `log`, as `level text`. */
  readonly lines: string[] = [];
  readonly #config: Uint8Array;
  readonly #exports: Exports;
  #exchange: HostExchange | undefined;
  #features = 0;
  #isResponse = false;
  #read: [request: number, response: number] = [0, 0];
  #isWritten: [request: boolean, response: boolean] = [false, false];

  constructor(module: Uint8Array<ArrayBuffer>, config: string) {
    this.#config = Buffer.from(config);
    const imports = { http_handler: this.#createFunctions() };
    const instance = new WebAssembly.Instance(new WebAssembly.Module(module), imports);
    this.#exports = instance.exports as unknown as Exports;
    this.#exports._initialize?.();
  }

  /** True if the guest has asked to buffer the response. */
  get buffersResponse(): boolean {
    return (this.#features & BUFFER_RESPONSE) !== 0;
  }

  /** Calls `handle_request`; returns the context if the request proceeds. */
  handleRequest(exchange: HostExchange): number | undefined {
    this.#exchange = exchange;
    this.#features = 0;
    this.#isResponse = false;
    this.#read = [0, 0];
    this.#isWritten = [false, false];
    const result = this.#exports.handle_request();
    const next = BigInt.asUintN(32, result);
    if (next > 1n) throw new Error(`next=${next}`);
    return next === 1n ? Number(BigInt.asIntN(32, result >> 32n)) : undefined;
  }

  handleResponse(context: number, isError: boolean): void {
    this.#isResponse = true;
    this.#isWritten[1] = false;
    this.#exports.handle_response(context, isError ? 1 : 0);
  }

  #createFunctions(): Record<string, (...args: number[]) => unknown> {
    const open = () => this.#exchange!;
    return {
      enable_features: (bits = 0) => {
        this.#features |= bits & FEATURES;
        return FEATURES;
      },
      get_config: (at = 0, limit = 0) => this.#write(this.#config, at, limit),
      log: (level = 0, at = 0, length = 0) => {
        if (level >= 0 && level < 3) this.lines.push(`${level} ${this.#text(at, length)}`);
      },
      log_enabled: (level = 0) => (level >= 0 && level < 3 ? 1 : 0),
      get_method: (at = 0, limit = 0) => this.#write(toBytes(open().method), at, limit),
      set_method: (at = 0, length = 0) => {
        open().method = this.#text(at, length);
      },
      get_uri: (at = 0, limit = 0) => this.#write(toBytes(open().uri || "/"), at, limit),
      set_uri: (at = 0, length = 0) => {
        open().uri = this.#text(at, length);
      },
      get_protocol_version: (at = 0, limit = 0) => this.#write(toBytes(open().version), at, limit),
      get_source_addr: (at = 0, limit = 0) => this.#write(toBytes(open().source), at, limit),
      get_status_code: () => open().status,
      set_status_code: (status = 0) => {
        open().status = status;
      },
      ...this.#createFields(),
      ...this.#createBodies(),
    };
  }

  #createFields(): Record<string, (...args: number[]) => unknown> {
    const isNamed = (name: string) => {
      const key = name.toLowerCase();
      return ([other]: readonly [string, string]) => other.toLowerCase() === key;
    };
    const change = (
      [kind = 0, nameAt = 0, nameLength = 0, at = 0, length = 0]: number[],
      work: (message: HostMessage, name: string, value: string) => void,
    ): void => {
      if (kind >= TRAILERS) throw new Error("trailers are not supported");
      work(this.#message(kind), this.#text(nameAt, nameLength), this.#text(at, length));
    };
    const list = (kind: number) => (kind >= TRAILERS ? [] : this.#message(kind).fields);
    return {
      get_header_names: (kind = 0, at = 0, limit = 0) =>
        this.#writeAll([...new Set(list(kind).map(([name]) => name.toLowerCase()))], at, limit),
      get_header_values: (kind = 0, nameAt = 0, nameLength = 0, at = 0, limit = 0) => {
        const found = list(kind).filter(isNamed(this.#text(nameAt, nameLength)));
        const values = found.map(([, value]) => value);
        return this.#writeAll(values, at, limit);
      },
      set_header_value: (...args) =>
        change(args, (message, name, value) => {
          message.fields = message.fields.filter((field) => !isNamed(name)(field));
          message.fields.push([name, value]);
        }),
      add_header_value: (...args) =>
        change(args, (message, name, value) => void message.fields.push([name, value])),
      remove_header: (...args) =>
        change(args.slice(0, 3), (message, name) => {
          message.fields = message.fields.filter((field) => !isNamed(name)(field));
        }),
    };
  }

  #createBodies(): Record<string, (...args: number[]) => unknown> {
    return {
      read_body: (kind = 0, at = 0, limit = 0) => {
        if (limit === 0) throw new Error("a limit of 0");
        const isThere = kind === 0 || (this.#isResponse && this.buffersResponse);
        const body = isThere ? this.#message(kind).body : new Uint8Array(0);
        const from = this.#read[kind as 0 | 1];
        const piece = body.subarray(from, from + limit);
        this.#view(at, piece.length).set(piece);
        this.#read[kind as 0 | 1] += piece.length;
        return BigInt(piece.length) | (from + piece.length === body.length ? EOF : 0n);
      },
      write_body: (kind = 0, at = 0, length = 0) => {
        const message = this.#message(kind);
        const before = this.#isWritten[kind as 0 | 1] ? message.body : new Uint8Array(0);
        this.#isWritten[kind as 0 | 1] = true;
        message.body = Buffer.concat([before, this.#view(at, length)]);
      },
    };
  }

  #message(kind: number): HostMessage {
    return kind === 0 ? this.#exchange!.request : this.#exchange!.response;
  }

  #view(at: number, length: number): Uint8Array {
    return new Uint8Array(this.#exports.memory.buffer, at >>> 0, length >>> 0);
  }

  #text(at: number, length: number): string {
    return Buffer.from(this.#view(at, length)).toString("latin1");
  }

  #write(value: Uint8Array, at: number, limit: number): number {
    if (value.length <= limit) this.#view(at, value.length).set(value);
    return value.length;
  }

  #writeAll(texts: string[], at: number, limit: number): bigint {
    const bytes = toBytes(texts.map((text) => `${text}\0`).join(""));
    return (BigInt(texts.length) << 32n) | BigInt(this.#write(bytes, at, limit));
  }
}

function toBytes(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}
