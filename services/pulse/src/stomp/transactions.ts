// Open transactions of a connection: messages and acknowledgements that take effect together at COMMIT.
import type { PublishInput } from "../publish/publish-input.ts";
import { StompError } from "./frame/stomp-error.ts";

/** Open transactions of a connection. */
const OPEN_MAX = 100;
/** Messages and acknowledgements in all open transactions of a connection. */
const FRAMES_MAX = 10_000;
/** Bytes of the messages in all open transactions of a connection; one journal entry may have 14 MiB. */
const BYTES_MAX = 8 * 1024 * 1024;
/** Bytes that a message takes besides payload and headers. */
const OVERHEAD_BYTES = 500;

/** Bytes of the open transactions of all connections. */
export class TransactionBytes {
  readonly #bytesMax: number;
  bytes = 0;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
  }

  /** False at the limit. */
  add(bytes: number): boolean {
    if (this.bytes + bytes > this.#bytesMax) return false;
    this.bytes += bytes;
    return true;
  }
}

/** The contents of a transaction. */
export interface Transaction {
  messages: PublishInput[];
  /** Applied when the messages are durable. */
  acknowledgements: (() => void)[];
  bytes: number;
}

/** The open transactions of one connection. */
export class Transactions {
  readonly #total: TransactionBytes;
  readonly #open = new Map<string, Transaction>();
  #frames = 0;
  #bytes = 0;

  constructor(total: TransactionBytes) {
    this.#total = total;
  }

  begin(id: string): void {
    if (this.#open.has(id))
      throw new StompError("invalid", `the transaction ${id} has begun already`);
    if (this.#open.size >= OPEN_MAX) {
      throw new StompError("refused", `a connection has ${OPEN_MAX} open transactions at most`);
    }
    this.#open.set(id, { messages: [], acknowledgements: [], bytes: 0 });
  }

  /** Adds a message. It is copied: the bytes received with it are released. */
  addMessage(id: string, input: PublishInput): void {
    const transaction = this.#get(id);
    let bytes = OVERHEAD_BYTES + input.payload.length;
    for (const { key, value } of input.headers ?? []) bytes += key.length + (value?.length ?? 0);
    if (this.#bytes + bytes > BYTES_MAX) {
      throw new StompError("refused", `open transactions hold ${BYTES_MAX} bytes at most`);
    }
    if (!this.#total.add(bytes)) {
      throw new StompError(
        "refused",
        "all clients together have too many bytes in open transactions",
      );
    }
    this.#bytes += bytes;
    transaction.bytes += bytes;
    this.#count();
    transaction.messages.push({ ...input, payload: Buffer.from(input.payload) });
  }

  addAcknowledgement(id: string, apply: () => void): void {
    const transaction = this.#get(id);
    this.#count();
    transaction.acknowledgements.push(apply);
  }

  /** Removes and returns a transaction; its bytes are no longer counted. */
  take(id: string): Transaction {
    const transaction = this.#get(id);
    this.#open.delete(id);
    this.#frames -= transaction.messages.length + transaction.acknowledgements.length;
    this.#bytes -= transaction.bytes;
    this.#total.bytes -= transaction.bytes;
    return transaction;
  }

  /** Aborts all. */
  close(): void {
    for (const id of Array.from(this.#open.keys())) this.take(id);
  }

  #get(id: string): Transaction {
    const transaction = this.#open.get(id);
    if (transaction !== undefined) return transaction;
    throw new StompError("invalid", `the transaction ${id} has not begun`);
  }

  #count(): void {
    if (this.#frames >= FRAMES_MAX) {
      throw new StompError("refused", `open transactions hold ${FRAMES_MAX} frames at most`);
    }
    this.#frames++;
  }
}
