// A Redis client: one pipelined connection that is opened again after a failure (RESP2).
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { ReplyParser, type RedisReply } from "./reply-parser.ts";

/** Options of {@link RedisClient}. */
export interface RedisClientOptions {
  /** `redis://` or `rediss://` with optional user, password and database: `redis://user:pass@host:6379/0`. */
  url: string;
  /** Called when the connection fails, at most once per attempt. */
  onFailure: (error: Error) => void;
  /** Called when the connection is ready again after a failure. */
  onRecovery: () => void;
}

/** Maximum commands without a reply; more fail immediately. */
const PENDING_MAX = 10_000;
const CONNECT_TIMEOUT_MS = 2_000;
const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 2_000;
const PORT_DEFAULT = 6379;

interface Pending {
  resolve: (reply: RedisReply) => void;
  reject: (error: Error) => void;
}

/** A client of one server. Commands fail immediately while the connection is not ready. */
export class RedisClient {
  readonly #options: RedisClientOptions;
  readonly #url: URL;
  #socket: Socket | undefined;
  #parser = new ReplyParser();
  #pending: Pending[] = [];
  #unsent = "";
  #isReady = false;
  #hasFailed = false;
  #isClosed = false;
  #retryMs = RETRY_MS_MIN;
  #timer: NodeJS.Timeout | undefined;

  /** Connects in the background. Throws a TypeError if the URL is invalid. */
  constructor(options: RedisClientOptions) {
    this.#options = options;
    this.#url = new URL(options.url);
    this.#open();
  }

  /** True if commands can be sent now. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Sends a command and resolves with its reply. Rejects with the error that Redis replied, or with the connection's. */
  send(...words: string[]): Promise<RedisReply> {
    if (!this.#isReady) return Promise.reject(new Error("Redis is not connected"));
    return this.#write(words);
  }

  /** Closes the connection; pending commands fail. */
  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#drop(new Error("the client was closed"));
  }

  #open(): void {
    const { protocol, hostname, port } = this.#url;
    const host = hostname.startsWith("[") ? hostname.slice(1, -1) : hostname;
    const place = { host, port: port === "" ? PORT_DEFAULT : Number(port) };
    const isSecure = protocol === "rediss:";
    const socket = isSecure ? connectTls({ ...place, servername: host }) : connect(place);
    this.#socket = socket;
    this.#parser = new ReplyParser();
    socket.setNoDelay(true);
    socket.setTimeout(CONNECT_TIMEOUT_MS, () => {
      if (!this.#isReady) socket.destroy(new Error("Redis did not accept the connection in time"));
    });
    socket.once(isSecure ? "secureConnect" : "connect", () => void this.#greet(socket));
    socket.on("data", (bytes: Buffer) => this.#read(socket, bytes));
    socket.on("error", (error) => this.#fail(socket, error));
    socket.on("close", () => this.#fail(socket, new Error("Redis closed the connection")));
    socket.unref();
  }

  async #greet(socket: Socket): Promise<void> {
    const { username, password, pathname } = this.#url;
    try {
      if (password !== "") {
        const user = username === "" ? [] : [decodeURIComponent(username)];
        await this.#write(["AUTH", ...user, decodeURIComponent(password)]);
      }
      const database = pathname.slice(1);
      await (database === "" ? this.#write(["PING"]) : this.#write(["SELECT", database]));
    } catch (error) {
      this.#fail(socket, error as Error);
      return;
    }
    if (this.#socket !== socket) return;
    this.#isReady = true;
    this.#retryMs = RETRY_MS_MIN;
    if (this.#hasFailed) this.#options.onRecovery();
    this.#hasFailed = false;
  }

  // Commands of one turn of the event loop are sent in one write.
  #write(words: readonly string[]): Promise<RedisReply> {
    if (this.#pending.length >= PENDING_MAX) {
      return Promise.reject(new Error("too many commands are waiting for Redis"));
    }
    if (this.#unsent === "") queueMicrotask(() => this.#flush());
    this.#unsent += `*${words.length}\r\n`;
    for (const word of words) this.#unsent += `$${Buffer.byteLength(word)}\r\n${word}\r\n`;
    return new Promise((resolve, reject) => this.#pending.push({ resolve, reject }));
  }

  #flush(): void {
    this.#socket?.write(this.#unsent);
    this.#unsent = "";
  }

  #read(socket: Socket, bytes: Buffer): void {
    if (this.#socket !== socket) return;
    try {
      for (const reply of this.#parser.read(bytes)) {
        const pending = this.#pending.shift();
        if (pending === undefined) throw new Error("Redis sent a reply without a command");
        if (reply instanceof Error) pending.reject(reply);
        else pending.resolve(reply);
      }
    } catch (error) {
      this.#fail(socket, error as Error);
    }
  }

  #fail(socket: Socket, error: Error): void {
    if (this.#socket !== socket) return;
    this.#drop(error);
    if (this.#isClosed) return;
    this.#hasFailed = true;
    this.#options.onFailure(error);
    this.#timer = setTimeout(() => this.#open(), this.#retryMs);
    this.#timer.unref();
    this.#retryMs = Math.min(RETRY_MS_MAX, this.#retryMs * 2);
  }

  #drop(error: Error): void {
    const socket = this.#socket;
    this.#socket = undefined;
    this.#isReady = false;
    this.#unsent = "";
    socket?.destroy();
    const pending = this.#pending;
    this.#pending = [];
    for (const { reject } of pending) reject(error);
  }
}
