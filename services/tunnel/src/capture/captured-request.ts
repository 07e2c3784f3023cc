// One captured request: the tap that collects it, and what is kept.
import { RawMessage } from "./raw-message.ts";
import type { RequestTap, TappedEnd, TappedRequest } from "./tap.ts";

/** Counts the memory of a captured request. */
export interface CaptureLedger {
  /** The request's memory has changed by `bytes`. */
  charge(request: CapturedRequest, bytes: number): void;
  /** The request has ended. */
  settle(request: CapturedRequest): void;
}

/** Memory of an entry without its path and messages, roughly. */
const ENTRY_BYTES = 1_024;
const STATUS_AT = "HTTP/1.1 ".length;

/** A request, from its beginning on. Messages are parsed when they are shown, not while they pass. */
export class CapturedRequest implements RequestTap {
  readonly id: string;
  readonly begun: TappedRequest;
  readonly request = new RawMessage();
  readonly response = new RawMessage();
  /** Undefined while the request is open. */
  end: TappedEnd | undefined = undefined;
  /** Memory that the ledger has counted. */
  bytes: number;
  readonly #ledger: CaptureLedger;
  readonly #ownBytes: number;
  #isClosed = false;
  /** Status of the response, 0 while its first line is incomplete. */
  #status = 0;

  constructor(id: string, begun: TappedRequest, ledger: CaptureLedger) {
    this.id = id;
    this.begun = begun;
    this.#ownBytes = ENTRY_BYTES + begun.path.length;
    this.bytes = this.#ownBytes;
    this.#ledger = ledger;
  }

  onRequestBytes(bytes: Uint8Array): void {
    if (!this.#isClosed) this.#add(this.request, bytes);
  }

  onResponseBytes(bytes: Uint8Array): void {
    if (this.#isClosed) return;
    this.#add(this.response, bytes);
    if (this.#status !== 0) return;
    this.#status = readStatus(this.response.bytes);
    // Bytes of other protocols are not captured.
    if (this.#status === 101) this.#isClosed = true;
  }

  onRestart(): void {
    this.request.clear();
    this.response.clear();
    this.#status = 0;
    this.#settle();
  }

  onEnd(end: TappedEnd): void {
    this.end = end;
    this.#isClosed = true;
    this.#ledger.settle(this);
  }

  /** Stops collecting: the request was evicted. */
  drop(): void {
    this.#isClosed = true;
    this.request.clear();
    this.response.clear();
  }

  #add(message: RawMessage, bytes: Uint8Array): void {
    const before = message.capacity;
    message.add(bytes);
    if (message.capacity !== before) this.#settle();
  }

  #settle(): void {
    const bytes = this.#ownBytes + this.request.capacity + this.response.capacity;
    const change = bytes - this.bytes;
    this.bytes = bytes;
    this.#ledger.charge(this, change);
  }
}

/** Status in the first line of a response, 0 if it is incomplete. */
export function readStatus(bytes: Buffer): number {
  if (bytes.length < STATUS_AT + 3) return 0;
  const status = Number(bytes.toString("latin1", STATUS_AT, STATUS_AT + 3));
  return Number.isInteger(status) ? status : 0;
}
