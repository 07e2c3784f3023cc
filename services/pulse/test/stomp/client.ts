// A client that sends frames as they are written, also wrong ones, and collects what the server sends.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { encodeFrame, type Frame } from "../../src/stomp/frame/frame.ts";
import { FrameReader } from "../../src/stomp/frame/frame-reader.ts";
import type { StompVersion } from "../../src/stomp/frame/version.ts";

const MEBIBYTE = 1024 * 1024;
const LIMITS = {
  headersMax: 1_000,
  lineBytesMax: MEBIBYTE,
  headBytesMax: MEBIBYTE,
  bodyBytesMax: 16 * MEBIBYTE,
};
const WAIT_MS = 10_000;

/** A frame of the server, easy to compare. */
export interface Answer {
  command: string;
  headers: Record<string, string>;
  body: string;
  bytes: Buffer;
}

/** A client of one version. */
export class StompClient {
  readonly socket: Socket;
  readonly #frames = new FrameReader(LIMITS);
  readonly #answers: Answer[] = [];
  #wake: () => void = () => undefined;
  #version: StompVersion = "1.2";
  /** Number of heart-beats received. */
  beats = 0;
  isClosed = false;

  private constructor(socket: Socket) {
    this.socket = socket;
    // Without a version the reader expects CONNECT, which has no body.
    this.#frames.version = "1.2";
    socket.setNoDelay(true);
    socket.on("error", () => undefined);
    socket.on("close", () => {
      this.isClosed = true;
      this.#wake();
    });
    socket.on("data", (bytes: Buffer) => this.#receive(bytes));
  }

  /** Opens a connection without a frame. */
  static open(port: number, tls?: ConnectionOptions): StompClient {
    const address = { host: "127.0.0.1", port };
    return new StompClient(
      tls === undefined ? connect(address) : connectTls({ ...address, ...tls }),
    );
  }

  /** Opens a connection and waits for CONNECTED. */
  static async connect(
    port: number,
    version: StompVersion = "1.2",
    headers: Record<string, string> = {},
    tls?: ConnectionOptions,
  ): Promise<StompClient> {
    const client = StompClient.open(port, tls);
    client.speak(version);
    client.send("CONNECT", {
      ...(version === "1.0" ? {} : { "accept-version": version, host: "localhost" }),
      ...headers,
    });
    const answer = await client.next();
    assert.equal(answer.command, "CONNECTED", JSON.stringify(answer));
    return client;
  }

  /** Sets the version in which answers are read and frames written. */
  speak(version: StompVersion): void {
    this.#version = version;
    this.#frames.version = version;
  }

  send(command: string, headers: Record<string, string> = {}, body: string | Buffer = ""): void {
    const bytes = Buffer.from(body);
    const all = Object.entries(headers);
    if (bytes.length > 0 && headers["content-length"] === undefined) {
      all.push(["content-length", String(bytes.length)]);
    }
    this.write(encodeFrame(command, all, this.#version, bytes));
  }

  write(bytes: string | Buffer): void {
    this.socket.write(bytes);
  }

  /** Sends a frame with a receipt and waits for it. */
  async ask(command: string, headers: Record<string, string> = {}, body: string | Buffer = "") {
    const receipt = `r-${Math.random()}`;
    this.send(command, { ...headers, receipt }, body);
    const answer = await this.next();
    assert.equal(answer.command, "RECEIPT", `${command}: ${JSON.stringify(answer)}`);
    assert.equal(answer.headers["receipt-id"], receipt);
  }

  /** The next frame of the server. */
  async next(): Promise<Answer> {
    const untilMs = performance.now() + WAIT_MS;
    for (;;) {
      const answer = this.#answers.shift();
      if (answer !== undefined) return answer;
      assert.ok(!this.isClosed, "the server has closed the connection");
      const leftMs = untilMs - performance.now();
      assert.ok(leftMs > 0, "no frame has arrived");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, leftMs);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  async message(): Promise<Answer> {
    const answer = await this.next();
    assert.equal(answer.command, "MESSAGE", JSON.stringify(answer));
    return answer;
  }

  /** The bodies of the next messages. */
  async bodies(count: number): Promise<string[]> {
    const bodies: string[] = [];
    while (bodies.length < count) bodies.push((await this.message()).body);
    return bodies;
  }

  /** The ERROR frame, after which the server closes. */
  async error(): Promise<Answer> {
    const answer = await this.next();
    assert.equal(answer.command, "ERROR", JSON.stringify(answer));
    await this.closed();
    return answer;
  }

  async closed(): Promise<void> {
    const untilMs = performance.now() + WAIT_MS;
    while (!this.isClosed) {
      assert.ok(performance.now() < untilMs, "the server does not close");
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, 100);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  /** Frames that have arrived and were not asked for yet. */
  get waiting(): number {
    return this.#answers.length;
  }

  close(): void {
    this.socket.destroy();
  }

  #receive(bytes: Buffer): void {
    if (bytes.length === 1 && bytes[0] === 10 && this.#frames.bytes === 0) this.beats++;
    this.#frames.push(bytes);
    for (let frame = this.#frames.next(); frame !== undefined; frame = this.#frames.next()) {
      this.#answers.push(toAnswer(frame));
    }
    this.#wake();
  }
}

function toAnswer({ command, headers, body }: Frame): Answer {
  return {
    command,
    headers: Object.fromEntries(headers),
    body: body.toString("utf8"),
    bytes: body,
  };
}
