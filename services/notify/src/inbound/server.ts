// The SMTP server for inbound mail (RFC 5321) with STARTTLS (RFC 3207), on smtp-server. It relays nothing.
import type { AddressInfo, Socket } from "node:net";
import {
  SMTPServer,
  type SMTPServerAddress,
  type SMTPServerDataStream,
  type SMTPServerSession,
} from "smtp-server";
import { PlatformError } from "@platform/kernel/errors";
import { BodyBudget, RateLimit, type BodyReservation } from "@platform/kernel/http";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import type { CertificatePair } from "@platform/kernel/tls";
import { normalizeLocal } from "../address/mailbox.ts";
import { LineEndingCheck } from "./line-endings.ts";
import type { Receiver, Route } from "./receiver.ts";
import { SmtpError } from "./smtp-error.ts";

/** Options of {@link startInboundServer}. */
export interface InboundServerOptions {
  receiver: Receiver;
  /** Default: all addresses. */
  host: string | undefined;
  port: number;
  /** Name of this host in the greeting. */
  hostname: string;
  /** Without it STARTTLS is not offered. */
  tls: CertificatePair | undefined;
  messageBytesMax: number;
  /** Bytes of messages that are being received, in all; half of them for a client address. Beyond it they get 452. */
  bodyBytesMax: number;
  recipientsMax: number;
  connectionsMax: number;
  connectionsPerAddressMax: number;
  /** Messages per minute and client address; 0 for no limit. */
  ratePerMinute: number;
  /** Idle connections are closed after this time. */
  idleMs: number;
  clock: Clock;
  log: Logger;
}

/** A running server. */
export interface InboundServer {
  /** The configured address, else the address of all interfaces that is bound. */
  readonly host: string;
  port: number;
  /** Replaces the certificate for new handshakes; from the first one on, STARTTLS is offered. */
  setTls(tls: CertificatePair): void;
  /** Stops accepting, waits for messages in flight up to `ms`, then closes all connections. */
  close(ms: number): Promise<void>;
}

/** Time that clients have to close when the service stops. */
const CLOSE_MS = 250;
/** Unknown recipients of a connection before it is closed: more are a search for addresses. */
const UNKNOWN_RECIPIENTS_MAX = 20;
/** Maximum time to receive a content, however slowly it arrives (RFC 5321 section 4.5.3.2.6 asks clients for 10 min). */
const CONTENT_MS_MAX = 10 * 60_000;
const MAIL_PARAMETERS: ReadonlySet<string> = new Set(["SIZE", "BODY"]);
const RCPT_PARAMETERS: ReadonlySet<string> = new Set();
const COMMAND_BYTES_MAX = 4_096;

interface ConnectionState {
  routes: Map<string, Route>;
  unknownRecipients: number;
}

/** Starts the server. Rejects if the port is in use or a certificate is invalid. */
export async function startInboundServer(options: InboundServerOptions): Promise<InboundServer> {
  const session = new Sessions(options);
  const { tls, log } = options;
  const server = new SMTPServer({
    name: options.hostname,
    banner: "ESMTP",
    logger: false,
    disabledCommands: tls === undefined ? ["AUTH", "STARTTLS"] : ["AUTH"],
    ...tls,
    minVersion: "TLSv1.2",
    size: options.messageBytesMax,
    maxRecipients: options.recipientsMax,
    maxClients: options.connectionsMax,
    maxCommandLength: COMMAND_BYTES_MAX,
    socketTimeout: options.idleMs,
    disableReverseLookup: true,
    hideSMTPUTF8: true,
    onConnect: (one, done) => void settle(session.connect(one), done),
    onMailFrom: (path, one, done) => void settle(session.start(one, path), done),
    onRcptTo: (path, one, done) => void settle(session.addRecipient(one, path), done),
    onData: (stream, one, done) => void settle(session.receive(stream, one), done),
    onClose: (one, done) => {
      session.end(one);
      done();
    },
  });
  // Errors of connections: clients that disappear, failed handshakes.
  server.on("error", (error) => log.debug("inbound connection failed", { error }));
  const sockets = new Set<Socket>();
  server.server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.server.once("error", reject);
    server.listen(options.port, options.host, () => {
      server.server.off("error", reject);
      resolve();
    });
  });
  const bound = server.server.address() as AddressInfo;
  return {
    host: options.host ?? bound.address,
    port: bound.port,
    setTls: ({ cert, key }) => {
      server.updateSecureContext({ cert, key });
      server.options.disabledCommands = ["AUTH"];
    },
    close: async (ms) => {
      server.options.closeTimeout = Math.max(1, ms);
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      await session.idle();
      for (const connection of server.connections) connection.close();
      // A client that does not read does not see the end either.
      const cut = setTimeout(() => {
        for (const socket of sockets) socket.destroy();
      }, CLOSE_MS);
      await closed;
      clearTimeout(cut);
    },
  };
}

async function settle(
  work: Promise<string | void>,
  done: (error?: Error | null, text?: string) => void,
): Promise<void> {
  try {
    done(null, (await work) ?? undefined);
  } catch (error) {
    done(error instanceof Error ? error : new Error(String(error)));
  }
}

// RFC 5321 section 4.1.1.11: parameters of extensions that were not offered.
function checkParameters(args: object | false | undefined, offered: ReadonlySet<string>): void {
  const unknown = Object.keys(args || {}).find((name) => !offered.has(name));
  if (unknown === undefined) return;
  throw new SmtpError(555, "5.5.4 The command has a parameter that was not offered");
}

// `postmaster` has no domain (RFC 5321 section 4.1.1.3).
function normalizePath(address: string): string {
  const at = address.lastIndexOf("@");
  if (at === -1) return address;
  return `${normalizeLocal(address.slice(0, at))}${address.slice(at)}`;
}

// The state of connections and the limits that they share.
class Sessions {
  readonly #options: InboundServerOptions;
  readonly #rate: RateLimit;
  readonly #states = new Map<string, ConnectionState>();
  readonly #connections = new Map<string, number>();
  readonly #receiving = new Set<Promise<unknown>>();
  readonly #budget: BodyBudget;

  constructor(options: InboundServerOptions) {
    this.#options = options;
    const { bodyBytesMax, messageBytesMax } = options;
    this.#budget = new BodyBudget({
      bytesMax: Math.max(bodyBytesMax, messageBytesMax),
      bytesPerClientMax: Math.max(Math.floor(bodyBytesMax / 2), messageBytesMax),
    });
    this.#rate = new RateLimit({
      name: "inbound",
      detail: "too many messages",
      clock: options.clock,
      ratePerSecond: options.ratePerMinute / 60,
      capacity: Math.max(1, options.ratePerMinute),
    });
  }

  async connect({ id, remoteAddress }: SMTPServerSession): Promise<void> {
    const { connectionsPerAddressMax } = this.#options;
    const count = (this.#connections.get(remoteAddress) ?? 0) + 1;
    this.#connections.set(remoteAddress, count);
    this.#states.set(id, { routes: new Map(), unknownRecipients: 0 });
    if (count > connectionsPerAddressMax) {
      throw new SmtpError(421, "4.7.0 Too many connections from your address");
    }
  }

  end({ id, remoteAddress }: SMTPServerSession): void {
    if (!this.#states.delete(id)) return;
    const count = (this.#connections.get(remoteAddress) ?? 1) - 1;
    if (count > 0) this.#connections.set(remoteAddress, count);
    else this.#connections.delete(remoteAddress);
  }

  async start({ id, remoteAddress }: SMTPServerSession, { args }: SMTPServerAddress) {
    checkParameters(args, MAIL_PARAMETERS);
    this.#stateOf(id).routes.clear();
    try {
      this.#rate.take(remoteAddress, 1);
    } catch (error) {
      if (!(error instanceof PlatformError)) throw error;
      throw new SmtpError(450, "4.7.1 Too many messages from your address, try again later");
    }
  }

  async addRecipient(
    { id }: SMTPServerSession,
    { address: path, args }: SMTPServerAddress,
  ): Promise<void> {
    checkParameters(args, RCPT_PARAMETERS);
    const address = normalizePath(path);
    const state = this.#stateOf(id);
    try {
      state.routes.set(address.toLowerCase(), this.#options.receiver.findRoute(address));
    } catch (error) {
      if (error instanceof SmtpError) state.unknownRecipients += 1;
      if (state.unknownRecipients <= UNKNOWN_RECIPIENTS_MAX) throw error;
      throw new SmtpError(421, "4.7.0 Too many unknown recipients");
    }
  }

  async receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<string> {
    const work = this.#receive(stream, session);
    this.#receiving.add(work);
    try {
      return `2.0.0 Stored as ${await work}`;
    } catch (error) {
      throw this.#toReply(error);
    } finally {
      this.#receiving.delete(work);
    }
  }

  /** Resolves when no message is being received. */
  async idle(): Promise<void> {
    await Promise.allSettled(this.#receiving);
  }

  #toReply(error: unknown): SmtpError {
    if (error instanceof SmtpError) return error;
    this.#options.log.error("inbound message failed", { error });
    return new SmtpError(451, "4.3.0 The message could not be stored, try again later");
  }

  async #receive(stream: SMTPServerDataStream, session: SMTPServerSession): Promise<string> {
    const { routes } = this.#stateOf(session.id);
    const reservation = this.#budget.open(session.remoteAddress);
    try {
      const content = await this.#readContent(stream, reservation);
      const { mailFrom, rcptTo } = session.envelope;
      return await this.#options.receiver.receive({
        content,
        clientAddress: session.remoteAddress.replace(/^::ffff:/i, ""),
        helo: session.hostNameAppearsAs,
        sender: mailFrom === false ? "" : mailFrom.address,
        protocol: session.secure ? "ESMTPS" : "ESMTP",
        recipients: rcptTo.map((one) => {
          const address = normalizePath(one.address);
          return { address, route: routes.get(address.toLowerCase())! };
        }),
      });
    } finally {
      reservation.release();
    }
  }

  // The stream is read to its end also if the message is refused: the reply comes after the final dot.
  async #readContent(stream: SMTPServerDataStream, reservation: BodyReservation): Promise<Buffer> {
    const tooSlow = new SmtpError(421, "4.4.2 The message arrived too slowly");
    const timer = setTimeout(() => stream.destroy(tooSlow), CONTENT_MS_MAX);
    const lines = new LineEndingCheck();
    let chunks: Buffer[] = [];
    let isOverloaded = false;
    try {
      for await (const chunk of stream as AsyncIterable<Buffer>) {
        lines.add(chunk);
        isOverloaded ||= !stream.sizeExceeded && !reservation.tryAdd(chunk.length);
        if (stream.sizeExceeded || isOverloaded) {
          reservation.release();
          chunks = [];
          continue;
        }
        chunks.push(chunk);
      }
      if (stream.sizeExceeded) {
        const { messageBytesMax } = this.#options;
        throw new SmtpError(552, `5.3.4 The message exceeds ${messageBytesMax} bytes`);
      }
      if (isOverloaded) throw new SmtpError(452, "4.3.1 Too many messages are being received");
      if (lines.hasBare) {
        throw new SmtpError(550, "5.6.11 The message contains CR or LF that do not form CRLF");
      }
      return Buffer.concat(chunks);
    } finally {
      clearTimeout(timer);
    }
  }

  #stateOf(id: string): ConnectionState {
    const state = this.#states.get(id);
    if (state === undefined) throw new SmtpError(421, "4.3.2 The connection is closing");
    return state;
  }
}
