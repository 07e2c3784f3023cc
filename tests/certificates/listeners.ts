// Clients of all listeners with TLS: each opens a connection and asks something that is answered.
import { once } from "node:events";
import { connect as connectPlain, type Socket } from "node:net";
import { connect, type TLSSocket } from "node:tls";

const ANSWER_MS = 20_000;

/** A protocol: prepares a connection, and asks something on it. */
export interface Protocol {
  /** Leads a plain connection to its TLS handshake. Default: it begins immediately. */
  prepare?: (socket: Socket) => Promise<void>;
  /** Sent once after the handshake, with the start of its answer. */
  greet?: { request: Buffer; answer: Buffer };
  /** Sent as often as wanted. */
  request: Buffer;
  /** Start of each answer. */
  answer: Buffer;
}

/** HTTP/1.1: the liveness probe. */
export const HTTP: Protocol = {
  request: Buffer.from("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"),
  answer: Buffer.from("HTTP/1.1 200 "),
};

/** Kafka: ApiVersions v0 without a client id; the answer begins with its size. */
export const KAFKA: Protocol = {
  request: Buffer.from("0000000a0012000000000007ffff", "hex"),
  answer: Buffer.from("0000", "hex"),
};

/** MQTT 3.1.1: CONNECT of a clean session without a client id, then PINGREQ. */
export const MQTT: Protocol = {
  greet: {
    request: Buffer.from("100c00044d5154540402003c0000", "hex"),
    answer: Buffer.from("20020000", "hex"),
  },
  request: Buffer.from("c000", "hex"),
  answer: Buffer.from("d000", "hex"),
};

/** STOMP: CONNECT, then a message with a receipt. */
export const STOMP: Protocol = {
  greet: {
    request: Buffer.from("CONNECT\naccept-version:1.2\nhost:localhost\n\n\0"),
    answer: Buffer.from("CONNECTED\n"),
  },
  request: Buffer.from("SEND\ndestination:/topic/certificates\nreceipt:r\n\nhello\0"),
  answer: Buffer.from("RECEIPT\n"),
};

/** SMTP: STARTTLS (RFC 3207), EHLO, then NOOP. */
export const SMTP: Protocol = {
  prepare: async (socket) => {
    await readReply(socket, "220 ");
    socket.write("EHLO client.example\r\n");
    await readReply(socket, "250 ");
    socket.write("STARTTLS\r\n");
    await readReply(socket, "220 ");
  },
  greet: { request: Buffer.from("EHLO client.example\r\n"), answer: Buffer.from("250-") },
  request: Buffer.from("NOOP\r\n"),
  answer: Buffer.from("250 "),
};

/** An open connection of a client. */
export class Client {
  readonly #socket: TLSSocket;
  readonly #protocol: Protocol;
  /** Number of answers. */
  answers = 0;

  private constructor(socket: TLSSocket, protocol: Protocol) {
    this.#socket = socket;
    this.#protocol = protocol;
  }

  /** Connects to a port of this machine, and completes the handshake. Rejects if it fails. */
  static async open(port: number, protocol: Protocol): Promise<Client> {
    const plain = connectPlain({ port, host: "127.0.0.1" });
    await once(plain, "connect");
    await protocol.prepare?.(plain);
    const socket = connect({ socket: plain, rejectUnauthorized: false, servername: "localhost" });
    await once(socket, "secureConnect");
    const client = new Client(socket, protocol);
    if (protocol.greet !== undefined) {
      await client.#exchange(protocol.greet.request, protocol.greet.answer);
    }
    return client;
  }

  /** The common name of the certificate of the server. */
  get serverName(): string {
    return String(this.#socket.getPeerCertificate().subject.CN);
  }

  /** Asks, and waits for the answer. Rejects if the connection ends or the answer is another. */
  async ask(): Promise<void> {
    await this.#exchange(this.#protocol.request, this.#protocol.answer);
    this.answers += 1;
  }

  close(): void {
    this.#socket.destroy();
  }

  async #exchange(request: Buffer, answer: Buffer): Promise<void> {
    const socket = this.#socket;
    if (socket.destroyed || socket.readableEnded) throw new Error("the connection is closed");
    socket.write(request);
    const ended = new AbortController();
    const onClose = (): void => ended.abort(new Error("the connection was closed"));
    socket.once("close", onClose).once("end", onClose);
    const signal = AbortSignal.any([ended.signal, AbortSignal.timeout(ANSWER_MS)]);
    try {
      const [data] = (await once(socket, "data", { signal }).catch(() => {
        throw signal.reason;
      })) as [Buffer];
      if (data.subarray(0, answer.length).equals(answer)) return;
      throw new Error(`unexpected answer: ${data.toString("latin1").slice(0, 200)}`);
    } finally {
      socket.off("close", onClose).off("end", onClose);
    }
  }
}

async function readReply(socket: Socket, last: string): Promise<void> {
  let reply = "";
  while (!reply.endsWith("\r\n") || !reply.trimEnd().split("\r\n").at(-1)!.startsWith(last)) {
    reply += String(((await once(socket, "data")) as [Buffer])[0]);
  }
}
