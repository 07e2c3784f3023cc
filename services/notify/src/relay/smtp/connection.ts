// A connection to an SMTP server: greeting, EHLO, STARTTLS, AUTH, then messages, one recipient each.
//
//   open ─► greeting ─► EHLO ─┬─► STARTTLS ─► EHLO ─┬─► AUTH ─► ready ◄──────────────┐
//                             └─────────────────────┘            │ MAIL RCPT DATA    │ reply, or RSET
//                                                                └─► content ─► "." ─┘
import type { Socket } from "node:net";
import { ReplyReader, SmtpProtocolError, toReplyText, type SmtpReply } from "./reply.ts";
import {
  connectSocket,
  describeFailure,
  SmtpConnectionError,
  upgradeSocket,
  type SmtpEndpoint,
  type Step,
} from "./socket.ts";

/** Options of a connection. */
export interface SmtpConnectionOptions {
  endpoint: SmtpEndpoint;
  /** Name of this host in EHLO. */
  hostname: string;
  connectTimeoutMs: number;
  /** Maximum wait for the reply to a command. */
  commandTimeoutMs: number;
  /** Maximum wait for the reply to the content. */
  contentTimeoutMs: number;
}

/** A message for one recipient. Addresses are ASCII; "" is the null sender. */
export interface Envelope {
  sender: string;
  recipient: string;
}

/** The reply that decided a message, and the command that it answers. */
export interface SendReply {
  step: "MAIL" | "RCPT" | "DATA" | "content";
  reply: SmtpReply;
}

interface ReplyWaiter {
  resolve: (reply: SmtpReply) => void;
  reject: (error: Error) => void;
}

const CRLF = Buffer.from("\r\n");
const END = Buffer.from(".\r\n");
const QUIT_MS = 2_000;

/** An open connection. */
export class SmtpConnection {
  readonly #options: SmtpConnectionOptions;
  #socket: Socket;
  #reader = new ReplyReader();
  readonly #replies: SmtpReply[] = [];
  #waiter: ReplyWaiter | undefined;
  #failure: Error | undefined;
  #features = new Map<string, string>();
  #isSecure = false;
  #mustReset = false;
  #detach: () => void = () => {};
  /** Number of messages that were sent. */
  sent = 0;
  onClose: (() => void) | undefined;

  private constructor(options: SmtpConnectionOptions, socket: Socket) {
    this.#options = options;
    this.#socket = socket;
    this.#attach(socket);
  }

  /** Connects and authenticates. Throws SmtpConnectionError. */
  static async open(options: SmtpConnectionOptions): Promise<SmtpConnection> {
    const { endpoint, connectTimeoutMs } = options;
    const socket = await connectSocket(endpoint, connectTimeoutMs);
    const connection = new SmtpConnection(options, socket);
    connection.#isSecure = endpoint.tls === "implicit";
    try {
      await connection.#greet();
      return connection;
    } catch (error) {
      connection.destroy();
      throw error;
    }
  }

  /** True if another message can be sent. */
  get isOpen(): boolean {
    return this.#failure === undefined && !this.#socket.destroyed;
  }

  /** True if the server announced the extension; its parameters are in `feature`. */
  feature(name: string): string | undefined {
    return this.#features.get(name);
  }

  /**
   * Sends a message; `parts` are its bytes, whose lines end with CRLF. Resolves with the deciding reply, whatever its
   * code. Throws SmtpConnectionError.
   */
  async send({ sender, recipient }: Envelope, parts: readonly Buffer[]): Promise<SendReply> {
    if (this.#mustReset) await this.#reset();
    const size = parts.reduce((sum, part) => sum + part.length, 0);
    const sizeParameter = this.#features.has("SIZE") ? ` SIZE=${size}` : "";
    const commands = [
      ["MAIL", `MAIL FROM:<${sender}>${sizeParameter}`],
      ["RCPT", `RCPT TO:<${recipient}>`],
      ["DATA", "DATA"],
    ] as const;
    this.#mustReset = true;
    const refused = this.#features.has("PIPELINING")
      ? await this.#pipeline(commands)
      : await this.#runEach(commands);
    if (refused !== undefined) return refused;
    const reply = await this.#sendContent(parts);
    this.sent += 1;
    this.#mustReset = false;
    return { step: "content", reply };
  }

  /** Closes politely, within two seconds. */
  quit(): void {
    if (!this.isOpen) return;
    this.onClose = undefined;
    this.#socket.end("QUIT\r\n");
    setTimeout(() => this.#socket.destroy(), QUIT_MS).unref();
  }

  destroy(): void {
    this.#socket.destroy();
  }

  /** Lets the process end while the connection is idle. */
  setIdle(isIdle: boolean): void {
    if (isIdle) this.#socket.unref();
    else this.#socket.ref();
  }

  async #greet(): Promise<void> {
    const { endpoint, commandTimeoutMs } = this.#options;
    expect2xx("greeting", await this.#read("greeting", commandTimeoutMs));
    await this.#hello();
    if (!this.#isSecure && endpoint.tls !== "off") await this.#startTls(endpoint);
    if (endpoint.user !== undefined) await this.#authenticate(endpoint.user, endpoint.pass ?? "");
  }

  async #hello(): Promise<void> {
    const { hostname } = this.#options;
    let reply = await this.#command("EHLO", `EHLO ${hostname}`);
    // RFC 5321 section 3.2: servers without extensions.
    if (reply.code === 500 || reply.code === 502)
      reply = await this.#command("EHLO", `HELO ${hostname}`);
    expect2xx("EHLO", reply);
    this.#features = new Map(
      reply.lines.slice(1).map((line) => {
        const [name = "", ...rest] = line.trim().split(/[ =]/);
        return [name.toUpperCase(), rest.join(" ").toUpperCase()];
      }),
    );
  }

  async #startTls(endpoint: SmtpEndpoint): Promise<void> {
    if (!this.#features.has("STARTTLS")) {
      if (endpoint.tls === "opportunistic") return;
      throw new SmtpConnectionError("STARTTLS", "the server does not offer STARTTLS");
    }
    const reply = await this.#command("STARTTLS", "STARTTLS");
    if (reply.code !== 220 && endpoint.tls === "opportunistic") return;
    expect2xx("STARTTLS", reply);
    // RFC 3207 section 6: bytes from before the handshake must not be read as replies after it.
    if (this.#reader.hasRest || this.#replies.length > 0) {
      throw new SmtpConnectionError("STARTTLS", "the server sent data before the TLS handshake");
    }
    this.#detach();
    const { connectTimeoutMs } = this.#options;
    const secure = await upgradeSocket(this.#socket, endpoint, connectTimeoutMs);
    this.#socket = secure;
    this.#reader = new ReplyReader();
    this.#attach(secure);
    this.#isSecure = true;
    await this.#hello();
  }

  async #authenticate(user: string, pass: string): Promise<void> {
    if (!this.#isSecure && this.#options.endpoint.tls !== "off") {
      throw new SmtpConnectionError("AUTH", "the password is not sent without TLS");
    }
    const methods = (this.#features.get("AUTH") ?? "").split(" ");
    const encode = (text: string): string => Buffer.from(text).toString("base64");
    if (methods.includes("PLAIN")) {
      const initial = encode(`\0${user}\0${pass}`);
      expect2xx("AUTH", await this.#command("AUTH", `AUTH PLAIN ${initial}`));
    } else if (methods.includes("LOGIN")) {
      // A server that asks for nothing would read the name and the password as commands, and log them.
      expectChallenge(await this.#command("AUTH", "AUTH LOGIN"));
      expectChallenge(await this.#command("AUTH", encode(user)));
      expect2xx("AUTH", await this.#command("AUTH", encode(pass)));
    } else {
      throw new SmtpConnectionError("AUTH", "the server offers neither AUTH PLAIN nor AUTH LOGIN");
    }
  }

  async #reset(): Promise<void> {
    expect2xx("MAIL", await this.#command("MAIL", "RSET"));
    this.#mustReset = false;
  }

  // RFC 2920: the three commands in one write. The first refusal decides.
  async #pipeline(
    commands: readonly (readonly ["MAIL" | "RCPT" | "DATA", string])[],
  ): Promise<SendReply | undefined> {
    this.#write(`${commands.map(([, line]) => line).join("\r\n")}\r\n`);
    let refused: SendReply | undefined;
    for (const [step] of commands) {
      const reply = await this.#read(step, this.#options.commandTimeoutMs);
      if (step === "DATA" && reply.code === 354) {
        if (refused === undefined) return undefined;
        // RFC 2920 section 3.1: the server accepted DATA without recipients; an empty message ends it.
        this.#socket.write(END);
        await this.#read("content", this.#options.commandTimeoutMs);
        return refused;
      }
      if (step === "DATA" || reply.code >= 300) refused ??= { step, reply };
      if (reply.code === 421) break;
    }
    return refused;
  }

  async #runEach(
    commands: readonly (readonly ["MAIL" | "RCPT" | "DATA", string])[],
  ): Promise<SendReply | undefined> {
    for (const [step, line] of commands) {
      const reply = await this.#command(step, line);
      const isAccepted = step === "DATA" ? reply.code === 354 : reply.code < 300;
      if (!isAccepted) return { step, reply };
    }
    return undefined;
  }

  async #sendContent(parts: readonly Buffer[]): Promise<SmtpReply> {
    this.#socket.cork();
    for (const part of parts) writeStuffed(this.#socket, part);
    const last = parts.at(-1);
    if (last === undefined || !last.subarray(-2).equals(CRLF)) this.#socket.write(CRLF);
    this.#socket.write(END);
    this.#socket.uncork();
    return this.#read("content", this.#options.contentTimeoutMs);
  }

  #command(step: Step, line: string): Promise<SmtpReply> {
    this.#write(`${line}\r\n`);
    return this.#read(step, this.#options.commandTimeoutMs);
  }

  #write(text: string): void {
    if (this.#failure === undefined) this.#socket.write(text, "latin1");
  }

  async #read(step: Step, timeoutMs: number): Promise<SmtpReply> {
    const ready = this.#replies.shift();
    if (ready !== undefined) return ready;
    const mayHaveArrived = step === "content";
    const fail = (message: string): SmtpConnectionError => {
      this.destroy();
      return new SmtpConnectionError(step, message, { mayHaveArrived });
    };
    if (this.#failure !== undefined) throw fail(describeFailure(this.#failure));
    let timer: NodeJS.Timeout | undefined;
    try {
      return await new Promise<SmtpReply>((resolve, reject) => {
        this.#waiter = { resolve, reject };
        timer = setTimeout(() => reject(new Error(`no reply within ${timeoutMs} ms`)), timeoutMs);
      });
    } catch (error) {
      throw fail(describeFailure(error));
    } finally {
      clearTimeout(timer);
      this.#waiter = undefined;
    }
  }

  #attach(socket: Socket): void {
    socket.setNoDelay(true);
    const onData = (chunk: Buffer): void => {
      try {
        for (const reply of this.#reader.push(chunk)) this.#deliver(reply);
      } catch (error) {
        this.#fail(error instanceof Error ? error : new Error(String(error)));
      }
    };
    const onError = (error: Error): void => this.#fail(error);
    const onClose = (): void => {
      this.#fail(new Error("the connection was closed"));
      this.onClose?.();
    };
    socket.on("data", onData).on("error", onError).on("close", onClose);
    this.#detach = () =>
      void socket.off("data", onData).off("error", onError).off("close", onClose);
  }

  #deliver(reply: SmtpReply): void {
    if (this.#waiter !== undefined) {
      const { resolve } = this.#waiter;
      this.#waiter = undefined;
      resolve(reply);
    } else if (this.#replies.length < 4) {
      this.#replies.push(reply);
    } else {
      this.#fail(new SmtpProtocolError("the server sends replies without commands"));
    }
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    this.#waiter?.reject(this.#failure);
    this.#socket.destroy();
  }
}

function expect2xx(step: Step, reply: SmtpReply): void {
  if (reply.code < 200 || reply.code >= 300) throw refusedAt(step, reply);
}

// RFC 4954 section 4.
function expectChallenge(reply: SmtpReply): void {
  if (reply.code !== 334) throw refusedAt("AUTH", reply);
}

function refusedAt(step: Step, reply: SmtpReply): SmtpConnectionError {
  return new SmtpConnectionError(step, `${reply.code} ${toReplyText(reply)}`, { reply });
}

// RFC 5321 section 4.5.2: a line that starts with a dot gets another one.
function writeStuffed(socket: Socket, part: Buffer): void {
  let start = 0;
  if (part[0] === 46) socket.write(".");
  for (let at = part.indexOf("\r\n."); at !== -1; at = part.indexOf("\r\n.", at + 2)) {
    socket.write(part.subarray(start, at + 2));
    socket.write(".");
    start = at + 2;
  }
  socket.write(part.subarray(start));
}
