// A client that says exactly what a test wants it to say.
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { readResponse, writeRequest } from "../../src/kafka/protocol/frame.ts";
import type { WireMessage } from "../../src/kafka/protocol/message.ts";
import { FrameReader } from "../../src/kafka/server/frame-reader.ts";

const frameBytesMax = 256 * 1024 * 1024;

/** One connection. */
export class KafkaClient implements AsyncDisposable {
  readonly socket: Socket;
  readonly #frames = new FrameReader(frameBytesMax);
  readonly #waiting: ((frame: Buffer | undefined) => void)[] = [];
  #correlationId = 0;
  #isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    // A request is written in parts.
    socket.setNoDelay(true);
    socket.on("data", (chunk: Buffer) => {
      this.#frames.push(chunk);
      while (this.#waiting.length > 0) {
        const frame = this.#frames.next();
        if (frame === undefined) return;
        this.#waiting.shift()!(frame);
      }
    });
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#isClosed = true;
      for (const resolve of this.#waiting.splice(0)) resolve(undefined);
    });
  }

  static async connect(port: number, tls?: ConnectionOptions): Promise<KafkaClient> {
    const socket =
      tls === undefined
        ? connect(port, "127.0.0.1")
        : connectTls({ port, host: "127.0.0.1", ...tls });
    await once(socket, tls === undefined ? "connect" : "secureConnect");
    return new KafkaClient(socket);
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  /** Sends a request and gives its answer; rejects if the connection is closed instead. */
  async ask<Q, QI, R, RI>(
    message: WireMessage<Q, QI, R, RI>,
    version: number,
    body: QI,
  ): Promise<R> {
    const correlationId = this.send(message, version, body);
    const frame = await this.readFrame();
    if (frame === undefined) throw new Error(`${message.name}: the connection was closed`);
    const response = readResponse(frame, message, version);
    if (response.correlationId !== correlationId) throw new Error("answers are out of order");
    return response.body;
  }

  /** Sends a request; gives its correlation id. */
  send<Q, QI, R, RI>(message: WireMessage<Q, QI, R, RI>, version: number, body: QI): number {
    const correlationId = ++this.#correlationId;
    const header = { apiVersion: version, correlationId, clientId: "test" };
    for (const part of writeRequest(message, header, body)) this.socket.write(part);
    return correlationId;
  }

  /** Sends bytes as they are. */
  sendRaw(bytes: Buffer): void {
    this.socket.write(bytes);
  }

  /** The next frame without its length; undefined when the connection is closed. */
  readFrame(): Promise<Buffer | undefined> {
    if (this.#waiting.length === 0) {
      const frame = this.#frames.next();
      if (frame !== undefined) return Promise.resolve(frame);
    }
    if (this.#isClosed) return Promise.resolve(undefined);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.socket.destroy();
    if (!this.#isClosed) await once(this.socket, "close");
  }
}
