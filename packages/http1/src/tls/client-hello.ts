// The first message of a TLS handshake, before TLS reads it (RFC 8446, section 4.1.2).

/** Content of the message. */
export interface ClientHello {
  kind: "hello";
  /** In lower case; empty without one. */
  serverName: string;
  /** In the order of the client's preference. */
  protocols: readonly string[];
  /** Names of the keys of the client's session tickets, in hexadecimal: the first 16 bytes of each (RFC 5077, section 4). */
  ticketNames: readonly string[];
}

/** Kind and content of the first bytes of a connection. */
export type HelloReading =
  | { kind: "incomplete" }
  /** Not a handshake, or one that is not valid or too long: TLS answers it. */
  | { kind: "other" }
  | ClientHello;

const INCOMPLETE: HelloReading = { kind: "incomplete" };
const OTHER: HelloReading = { kind: "other" };
/** Bytes that are read: validators of challenges send some hundred, browsers two thousand. */
const HELLO_BYTES_MAX = 16_384;
const RECORD_HEAD_BYTES = 5;
const HANDSHAKE_RECORD = 22;
const MESSAGE_HEAD_BYTES = 4;
const CLIENT_HELLO = 1;
const SERVER_NAME = 0;
const PROTOCOLS = 16;
/** Ticket of a session of TLS 1.2, and tickets of sessions of TLS 1.3. */
const SESSION_TICKET = 35;
const PRE_SHARED_KEYS = 41;
const TICKET_AGE_BYTES = 4;
const HOST_NAME = 0;
/** Version and random bytes. */
const FIXED_BYTES = 34;
const NAME_BYTES_MAX = 255;
/** Bytes of the name of a ticket's keys. */
export const TICKET_NAME_BYTES = 16;
/** Clients send one or two. */
const TICKETS_MAX = 16;

/** Reads the message from the pieces in which a connection delivers it; it may be in several records. */
export class ClientHelloReader {
  readonly #raw = Buffer.allocUnsafe(HELLO_BYTES_MAX);
  #rawBytes = 0;
  /** Beginning of the next record. */
  #at = 0;
  readonly #message = Buffer.allocUnsafe(HELLO_BYTES_MAX);
  #messageBytes = 0;

  /** Takes the next bytes; not to be called after anything but `incomplete`. */
  add(bytes: Buffer): HelloReading {
    if (this.#rawBytes + bytes.length > HELLO_BYTES_MAX) return this.#addLast(bytes);
    this.#rawBytes += bytes.copy(this.#raw, this.#rawBytes);
    return this.#read();
  }

  // Bytes after the message may come with it.
  #addLast(bytes: Buffer): HelloReading {
    this.#rawBytes += bytes.copy(this.#raw, this.#rawBytes);
    const reading = this.#read();
    return reading.kind === "incomplete" ? OTHER : reading;
  }

  #read(): HelloReading {
    const raw = this.#raw;
    while (this.#rawBytes > this.#at) {
      if (raw[this.#at] !== HANDSHAKE_RECORD) return OTHER;
      const start = this.#at + RECORD_HEAD_BYTES;
      if (this.#rawBytes < start) return INCOMPLETE;
      const length = raw.readUInt16BE(this.#at + 3);
      if (length === 0 || start + length > HELLO_BYTES_MAX) return OTHER;
      if (this.#rawBytes < start + length) return INCOMPLETE;
      this.#messageBytes += raw.copy(this.#message, this.#messageBytes, start, start + length);
      this.#at = start + length;
      if (this.#messageBytes < MESSAGE_HEAD_BYTES) continue;
      if (this.#message[0] !== CLIENT_HELLO) return OTHER;
      const end = MESSAGE_HEAD_BYTES + this.#message.readUIntBE(1, 3);
      if (end > HELLO_BYTES_MAX) return OTHER;
      if (this.#messageBytes < end) continue;
      return parseMessage(new Pieces(this.#message.subarray(MESSAGE_HEAD_BYTES, end))) ?? OTHER;
    }
    return INCOMPLETE;
  }
}

function parseMessage(message: Pieces): HelloReading | undefined {
  message.skip(FIXED_BYTES);
  // Session, ciphers, compression.
  for (const lengthBytes of [1, 2, 1] as const) message.take(lengthBytes);
  const extensions = message.take(2);
  let serverName = "";
  const protocols: string[] = [];
  const ticketNames: string[] = [];
  while (extensions.left > 0) {
    const type = extensions.readNumber(2);
    const extension = extensions.take(2);
    if (type === SERVER_NAME) serverName = parseServerName(extension);
    else if (type === PROTOCOLS) {
      const list = extension.take(2);
      while (list.left > 0) protocols.push(list.take(1).text());
    } else if (type === SESSION_TICKET) addTicketName(ticketNames, extension);
    else if (type === PRE_SHARED_KEYS) {
      const list = extension.take(2);
      while (list.left > 0) {
        addTicketName(ticketNames, list.take(2));
        list.skip(TICKET_AGE_BYTES);
      }
    }
  }
  if (message.isShort || extensions.isShort) return undefined;
  return { kind: "hello", serverName, protocols, ticketNames };
}

function addTicketName(names: string[], ticket: Pieces): void {
  if (ticket.left >= TICKET_NAME_BYTES && names.length < TICKETS_MAX) {
    names.push(ticket.hex(TICKET_NAME_BYTES));
  }
}

function parseServerName(extension: Pieces): string {
  const list = extension.take(2);
  while (list.left > 0) {
    const type = list.readNumber(1);
    const name = list.take(2);
    if (type !== HOST_NAME) continue;
    return name.left > NAME_BYTES_MAX ? "" : name.text().toLowerCase();
  }
  return "";
}

/** Reads lengths and what they announce; beyond the end everything is empty, and `isShort` is true. */
class Pieces {
  readonly #bytes: Buffer;
  #at = 0;
  isShort = false;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get left(): number {
    return this.isShort ? 0 : this.#bytes.length - this.#at;
  }

  skip(count: number): void {
    if (count > this.left) this.isShort = true;
    else this.#at += count;
  }

  readNumber(count: 1 | 2): number {
    const start = this.#at;
    this.skip(count);
    return this.isShort ? 0 : this.#bytes.readUIntBE(start, count);
  }

  take(lengthBytes: 1 | 2): Pieces {
    const length = this.readNumber(lengthBytes);
    const start = this.#at;
    this.skip(length);
    const piece = new Pieces(
      this.isShort ? Buffer.alloc(0) : this.#bytes.subarray(start, this.#at),
    );
    piece.isShort = this.isShort;
    return piece;
  }

  /** The first bytes. */
  hex(count: number): string {
    return this.#bytes.toString("hex", 0, count);
  }

  text(): string {
    return this.#bytes.toString("latin1");
  }
}
