// The host functions of the http-wasm ABI for one instance.
import { GuestError } from "../errors.ts";
import type { FieldList } from "./field-list.ts";
import { checkFieldValue, checkMethod, isChangeable } from "./field-rules.ts";
import type { GuestMemory } from "./guest-memory.ts";
import type { BodyPart, GuestEnvironment, GuestMessages } from "./guest-messages.ts";
import { BodyKind, Feature, FieldKind, LogLevel } from "./http-abi.ts";

/** Units of a call; those that work on fields cost more. */
const CALL_UNITS = 100;
const FIELD_UNITS = 500;
/** Host calls are settled with the guest's own fuel each time they have used so much. */
const SETTLE_UNITS = 4_096;
/**
 * The start of an instance may cost as much as so many calls: Go and its packages need 2 to 4 million units, and more for
 * regular expressions and templates.
 */
const START_FACTOR = 20;
const FUEL_MAX = 2_147_483_647;
const LOG_BYTES_MAX = 4_096;
const URI_BYTES_MAX = 16_384;
const URI = /^[\x21-\x7e]+$/;
/** Fields that describe the bytes of a body: they go with it when the guest writes another one. */
const BODY_FIELDS = ["content-encoding", "content-md5", "content-digest", "digest", "repr-digest"];
const SUPPORTED_FEATURES = Feature.BufferRequest | Feature.BufferResponse;
const END_OF_BODY = 1n << 32n;
const NO_BYTES = new Uint8Array(0);
const END_PART: BodyPart = { bytes: NO_BYTES, isLast: true };
const UTF8 = new TextDecoder();

type Phase = "idle" | "start" | "request" | "response";

/** The functions of module `http_handler`, and what the current request has asked of them. */
export class GuestHost {
  readonly #environment: GuestEnvironment;
  #memory!: GuestMemory;
  #fuel!: WebAssembly.Global;
  #units = 0;
  /** Fuel of the current call. */
  #granted = 0;
  /** Fuel that is left once the call has ended; -1 before. */
  #left = -1;
  #phase: Phase = "idle";
  #messages: GuestMessages | undefined;
  #ownFeatures = 0;
  #features = 0;
  #ignoredFields = 0;
  /** A body has been read or written. */
  #hasBodies = false;
  /** A line of standard output that has not ended: one character for each byte. */
  #printed = "";
  readonly #read: [BodyCursor | undefined, BodyCursor | undefined] = [undefined, undefined];
  readonly #written: [WrittenBody | undefined, WrittenBody | undefined] = [undefined, undefined];

  constructor(environment: GuestEnvironment) {
    this.#environment = environment;
  }

  /** Called once, when the instance exists. */
  bind(memory: GuestMemory, fuel: WebAssembly.Global): void {
    this.#memory = memory;
    this.#fuel = fuel;
  }

  get features(): number {
    return this.#features;
  }

  get ignoredFields(): number {
    return this.#ignoredFields;
  }

  get requestBody(): Buffer | undefined {
    return this.#written[BodyKind.Request]?.join();
  }

  get responseBody(): Buffer | undefined {
    return this.#written[BodyKind.Response]?.join();
  }

  get fuelUsed(): number {
    if (this.#left !== -1) return this.#granted - this.#left;
    return this.#granted - Math.max(this.#fuel.value - this.#units, 0);
  }

  get isFuelSpent(): boolean {
    return this.#fuel.value - this.#units < 0;
  }

  beginStart(): void {
    this.#phase = "start";
    this.#refuel(START_FACTOR);
  }

  /** Features that were enabled during the start apply to all requests. */
  endStart(): void {
    this.#phase = "idle";
    this.#ownFeatures = this.#features;
  }

  beginRequest(messages: GuestMessages): void {
    this.#clear();
    this.#messages = messages;
    this.#phase = "request";
    this.#refuel();
  }

  beginResponse(messages: GuestMessages): void {
    if (this.#messages !== messages) this.#clear();
    this.#messages = messages;
    this.#phase = "response";
    // A body that was written before `next` was called is not that of this response.
    this.#written[BodyKind.Response] = undefined;
    this.#read[BodyKind.Response] = undefined;
    this.#refuel();
  }

  end(): void {
    this.#clear();
    this.#phase = "idle";
  }

  log(level: number, text: string): void {
    this.#environment.log(level, text.slice(0, LOG_BYTES_MAX));
  }

  /** Standard output and error: logged at debug, line by line. */
  print(bytes: Uint8Array): void {
    if (!this.#environment.isLogged(LogLevel.Debug)) return;
    this.#printed += Buffer.from(bytes).toString("latin1");
    for (let end = this.#printed.indexOf("\n"); end !== -1; end = this.#printed.indexOf("\n"))
      this.#logPrinted(end, 1);
    while (this.#printed.length >= LOG_BYTES_MAX) this.#logPrinted(LOG_BYTES_MAX, 0);
  }

  /** Logs a line that has no end yet. */
  flushPrinted(): void {
    if (this.#printed !== "") this.#logPrinted(this.#printed.length, 0);
  }

  #logPrinted(end: number, gap: number): void {
    const line = Buffer.from(this.#printed.slice(0, end), "latin1");
    this.#printed = this.#printed.slice(end + gap);
    this.log(LogLevel.Debug, UTF8.decode(line));
  }

  /** Pays for the work of a host function. Throws if the fuel is spent. */
  charge(units: number): void {
    this.#units += units;
    if (this.#units >= SETTLE_UNITS) this.settleFuel();
  }

  /** Takes what host functions have used from the fuel of the guest. Throws if it is spent. */
  settleFuel(): void {
    if (this.#units === 0) return;
    const left = this.#fuel.value - this.#units;
    this.#units = 0;
    this.#fuel.value = Math.max(left, -1);
    if (left < 0) throw new GuestError("fuel-limit", "The guest used all of its fuel.");
  }

  /** The current call has ended: what is left needs not be given back to the guest. Throws if it has used more than its fuel. */
  endCall(): void {
    const left = this.#fuel.value - this.#units;
    if (left < 0) throw new GuestError("fuel-limit", "The guest used all of its fuel.");
    this.#left = left;
  }

  /** The functions by their names in the ABI. */
  createImports(): Record<string, (...args: never[]) => unknown> {
    return {
      ...this.#createSettings(),
      ...this.#createRequestLine(),
      ...this.#createFields(),
      ...this.#createBodies(),
    };
  }

  #createSettings(): Record<string, (...args: never[]) => unknown> {
    return {
      enable_features: (features: number) => {
        this.charge(CALL_UNITS);
        // Later than handle_request they have no effect.
        if (this.#phase !== "response") this.#features |= features & SUPPORTED_FEATURES;
        return SUPPORTED_FEATURES;
      },
      get_config: (at: number, limit: number) => {
        const { config } = this.#environment;
        this.charge(CALL_UNITS + config.length / 16);
        return this.#memory.writeBytes(config, at, limit);
      },
      log: (level: number, at: number, length: number) => {
        this.charge(FIELD_UNITS);
        if (!this.#environment.isLogged(level)) return;
        const kept = Math.min(length >>> 0, LOG_BYTES_MAX);
        this.#memory.view(at, length);
        this.log(level, UTF8.decode(this.#memory.view(at, kept)));
      },
      log_enabled: (level: number) => {
        this.charge(CALL_UNITS);
        return this.#environment.isLogged(level) ? 1 : 0;
      },
      get_status_code: () => {
        this.charge(CALL_UNITS);
        return this.#open().status;
      },
      set_status_code: (status: number) => {
        this.charge(CALL_UNITS);
        if (status < 200 || status > 599)
          throw trap(`The guest set the status ${status}; it must be between 200 and 599.`);
        this.#open().status = status;
      },
    };
  }

  #createRequestLine(): Record<string, (...args: never[]) => unknown> {
    return {
      get_method: (at: number, limit: number) => this.#writeText(this.#open().method, at, limit),
      set_method: (at: number, length: number) => {
        const method = this.#readText(at, length);
        checkMethod(method);
        this.#openRequest("method").method = method;
      },
      get_uri: (at: number, limit: number) => this.#writeText(this.#open().uri, at, limit),
      set_uri: (at: number, length: number) => {
        const messages = this.#openRequest("URI");
        const uri = this.#readText(at, length);
        if (uri.length > URI_BYTES_MAX) throw trap("The guest set a URI that is too long.");
        if (uri !== "" && !URI.test(uri))
          throw trap("The guest set a URI with a space, a control or a byte above 127.");
        messages.uri = uri === "" ? "/" : uri;
      },
      get_protocol_version: (at: number, limit: number) =>
        this.#writeText(this.#open().protocolVersion, at, limit),
      get_source_addr: (at: number, limit: number) =>
        this.#writeText(this.#open().sourceAddress, at, limit),
    };
  }

  #createFields(): Record<string, (...args: never[]) => unknown> {
    return {
      get_header_names: (kind: number, at: number, limit: number) => {
        this.charge(FIELD_UNITS);
        const names = this.#openFields(kind)?.listNames() ?? [];
        this.charge(names.length * CALL_UNITS);
        return this.#memory.writeTexts(names, at, limit);
      },
      get_header_values: (
        kind: number,
        nameAt: number,
        nameLength: number,
        at: number,
        limit: number,
      ) => {
        this.charge(FIELD_UNITS);
        this.charge(CALL_UNITS + (nameLength >>> 0) / 16);
        const name = this.#memory.readText(nameAt, nameLength);
        if (name === "") throw trap("The guest passed an empty field name.");
        const values = this.#openFields(kind)?.listValues(name) ?? [];
        for (const { length } of values) this.charge(length / 16);
        return this.#memory.writeTexts(values, at, limit);
      },
      set_header_value: (
        kind: number,
        nameAt: number,
        nameLength: number,
        at: number,
        length: number,
      ) => {
        const fields = this.#openForChange(kind);
        const name = this.#readText(nameAt, nameLength);
        const isIgnored = this.#ignores(name);
        const value = this.#readValue(at, length, fields);
        if (!isIgnored) fields.set(name, value);
      },
      add_header_value: (
        kind: number,
        nameAt: number,
        nameLength: number,
        at: number,
        length: number,
      ) => {
        const fields = this.#openForChange(kind);
        const name = this.#readText(nameAt, nameLength);
        const isIgnored = this.#ignores(name);
        const value = this.#readValue(at, length, fields);
        if (!isIgnored) fields.add(name, value);
      },
      remove_header: (kind: number, nameAt: number, nameLength: number) => {
        const fields = this.#openForChange(kind);
        const name = this.#readText(nameAt, nameLength);
        if (!this.#ignores(name)) fields.remove(name);
      },
    };
  }

  #readValue(at: number, length: number, fields: FieldList): string {
    const value = this.#readText(at, length);
    checkFieldValue(value, fields);
    return value;
  }

  #createBodies(): Record<string, (...args: never[]) => unknown> {
    return {
      read_body: (kind: number, at: number, limit: number) => this.#readBody(kind, at, limit),
      write_body: (kind: number, at: number, length: number) => {
        const size = length >>> 0;
        this.charge(CALL_UNITS + size / 16);
        this.#openBody(kind).append(this.#memory.view(at, size));
      },
    };
  }

  #readBody(kind: number, at: number, limit: number): bigint | Promise<bigint> {
    this.charge(FIELD_UNITS);
    if (limit === 0) throw trap("The guest read a body with a limit of 0 bytes.");
    if (kind !== BodyKind.Request && kind !== BodyKind.Response) throw unknownKind("body", kind);
    // Checked before the body is there, which may take long.
    this.#memory.view(at, limit);
    const cursor = (this.#read[kind] ??= new BodyCursor());
    this.#hasBodies = true;
    const missing = (limit >>> 0) - cursor.size;
    if (missing <= 0 || cursor.isComplete) return this.#passBody(cursor, at, limit);
    const part = this.#readPart(kind, missing);
    if (!(part instanceof Promise)) {
      cursor.push(part);
      return this.#passBody(cursor, at, limit);
    }
    return part.then((arrived) => {
      cursor.push(arrived);
      return this.#passBody(cursor, at, limit);
    });
  }

  #readPart(kind: number, bytesMin: number): BodyPart | Promise<BodyPart> {
    const messages = this.#open();
    // The request has left by now: what was not read before is gone.
    if (kind === BodyKind.Request)
      return this.#phase === "request" ? messages.readRequestBody(bytesMin) : END_PART;
    const bytes = this.#phase === "response" ? messages.readResponseBody() : NO_BYTES;
    return { bytes, isLast: true };
  }

  #passBody(cursor: BodyCursor, at: number, limit: number): bigint {
    const size = Math.min(cursor.size, limit >>> 0);
    this.charge(size / 16);
    cursor.take(this.#memory.view(at, size));
    return BigInt(size) | (cursor.isAtEnd ? END_OF_BODY : 0n);
  }

  #openBody(kind: number): WrittenBody {
    const messages = kind === BodyKind.Request ? this.#openRequest("body") : this.#open();
    if (kind !== BodyKind.Request && kind !== BodyKind.Response) throw unknownKind("body", kind);
    const known = this.#written[kind];
    if (known !== undefined) return known;
    const isRequest = kind === BodyKind.Request;
    const fields = isRequest ? messages.requestFields : messages.responseFields;
    for (const name of BODY_FIELDS) fields.remove(name);
    this.#hasBodies = true;
    const bytesMax = isRequest ? messages.requestBodyBytesMax : messages.responseBodyBytesMax;
    return (this.#written[kind] = new WrittenBody(bytesMax));
  }

  #open(): GuestMessages {
    if (this.#messages === undefined) throw trap("The guest used a request while it had none.");
    return this.#messages;
  }

  #openRequest(part: string): GuestMessages {
    const messages = this.#open();
    if (this.#phase !== "request")
      throw trap(`The guest changed the ${part} of a request that has been sent.`);
    return messages;
  }

  // Trailers are not offered: there are no names and no values.
  #openFields(kind: number): FieldList | undefined {
    const messages = this.#open();
    switch (kind) {
      case FieldKind.Request:
        return messages.requestFields;
      case FieldKind.Response:
        return messages.responseFields;
      case FieldKind.RequestTrailers:
      case FieldKind.ResponseTrailers:
        return undefined;
      default:
        throw unknownKind("header", kind);
    }
  }

  #openForChange(kind: number): FieldList {
    this.charge(FIELD_UNITS);
    if (kind === FieldKind.Request) this.#openRequest("fields");
    const fields = this.#openFields(kind);
    if (fields === undefined) throw trap("The guest set a trailer; trailers are not supported.");
    return fields;
  }

  /** Counts a field that guests cannot change. Throws for a name that no field can have. */
  #ignores(name: string): boolean {
    if (isChangeable(name)) return false;
    this.#ignoredFields++;
    return true;
  }

  #readText(at: number, length: number): string {
    this.charge(CALL_UNITS + (length >>> 0) / 16);
    return this.#memory.readText(at, length);
  }

  #writeText(text: string, at: number, limit: number): number {
    this.charge(CALL_UNITS + text.length / 16);
    return this.#memory.writeText(text, at, limit);
  }

  #refuel(factor = 1): void {
    this.#units = 0;
    this.#left = -1;
    this.#granted = Math.min(this.#environment.fuelPerCall * factor, FUEL_MAX);
    this.#fuel.value = this.#granted;
  }

  #clear(): void {
    this.#messages = undefined;
    this.#features = this.#ownFeatures;
    this.#ignoredFields = 0;
    if (this.#hasBodies) this.#clearBodies();
  }

  #clearBodies(): void {
    this.#hasBodies = false;
    this.#read.fill(undefined);
    this.#written.fill(undefined);
  }
}

/** A body that is read in pieces. */
class BodyCursor {
  #parts: Uint8Array[] = [];
  /** Offset in the first part. */
  #at = 0;
  /** Bytes that have arrived and have not been taken. */
  size = 0;
  /** No part follows those that have arrived. */
  isComplete = false;

  get isAtEnd(): boolean {
    return this.isComplete && this.size === 0;
  }

  push({ bytes, isLast }: BodyPart): void {
    this.isComplete = isLast;
    this.size += bytes.length;
    if (bytes.length > 0) this.#parts.push(bytes);
  }

  /** Fills `target`, which is not larger than `size`. */
  take(target: Uint8Array): void {
    let done = 0;
    while (done < target.length) {
      const [part] = this.#parts as [Uint8Array];
      const piece = part.subarray(this.#at, this.#at + target.length - done);
      target.set(piece, done);
      done += piece.length;
      this.#at += piece.length;
      if (this.#at < part.length) break;
      this.#parts.shift();
      this.#at = 0;
    }
    this.size -= done;
  }
}

/** A body that is written in pieces. */
class WrittenBody {
  readonly #bytesMax: number;
  #pieces: Buffer[] = [];
  #size = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  append(piece: Uint8Array): void {
    this.#size += piece.length;
    if (this.#size > this.#bytesMax)
      throw trap(`The guest wrote a body of more than ${this.#bytesMax} bytes.`);
    if (piece.length > 0) this.#pieces.push(Buffer.from(piece));
  }

  join(): Buffer {
    if (this.#pieces.length !== 1) this.#pieces = [Buffer.concat(this.#pieces)];
    return this.#pieces[0]!;
  }
}

function trap(message: string): GuestError {
  return new GuestError("trapped", message);
}

function unknownKind(what: string, kind: number): GuestError {
  return trap(`The guest passed the unknown ${what} kind ${kind}.`);
}
