// Connects a stream to the local service: bytes pass both ways, with back-pressure.
import { connect as connectTcp, type Socket, type OnReadOpts } from "node:net";
import { connect as connectTls } from "node:tls";
import { ResetCode, type ResetCodeId } from "../frame/format.ts";
import { COPIED_BYTES_MAX, type Stream, type StreamListener } from "../frame/stream.ts";
import type { ServiceTarget } from "./target.ts";

const READ_BYTES = 65_536;
const CONNECT_MS = 10_000;
/** Reads of all connections; those that receive much have their own. */
const sharedReads = Buffer.allocUnsafeSlow(READ_BYTES);

/** Connects a stream to the target; both end together. `isHttp`: requests follow each other on the connection. */
export function connectLocally(stream: Stream, target: ServiceTarget, isHttp: boolean): void {
  stream.listener = new LocalStream(stream, target, isHttp);
}

class LocalStream implements StreamListener {
  readonly #stream: Stream;
  readonly #socket: Socket;
  readonly #isHttp: boolean;
  #ownReads: Buffer | null = null;
  /** TCP is connected; a TLS handshake may follow. */
  #hasTcp = false;
  #isConnected = false;
  #hasEnded = false;
  #peerEnded = false;
  #connectTimer: NodeJS.Timeout | undefined;
  #code: ResetCodeId = ResetCode.Broken;

  constructor(stream: Stream, target: ServiceTarget, isHttp: boolean) {
    this.#stream = stream;
    this.#isHttp = isHttp;
    this.#socket = target.secure ? this.#openTls(target) : this.#openPlain(target);
    this.#connectTimer = setTimeout(() => {
      this.#code = ResetCode.TimedOut;
      this.#socket.destroy();
    }, CONNECT_MS);
    this.#listen(target.secure ? "secureConnect" : "connect");
  }

  onBytes(bytes: Buffer): void {
    // A local service that has closed its side takes no further request on this connection.
    if (this.#hasEnded && this.#isHttp) return;
    const socket = this.#socket;
    if (socket.destroyed) {
      this.#stream.reset(this.#code);
      return;
    }
    this.#stream.delivered += bytes.length;
    if (!socket.write(bytes)) this.#stream.pause();
    if (bytes.length > COPIED_BYTES_MAX && socket.writableLength > 0) this.#stream.keepReads();
  }

  onEnd(): void {
    this.#peerEnded = true;
    this.#socket.end();
  }

  onDrain(): void {
    this.#socket.resume();
  }

  onReset(): void {
    // After END the last bytes still have to reach the service.
    if (this.#peerEnded) this.#socket.destroySoon();
    else this.#socket.destroy();
  }

  #openPlain({ host, port }: ServiceTarget): Socket {
    const onread: OnReadOpts = {
      buffer: () => this.#ownReads ?? sharedReads,
      callback: (length, bytes) => {
        this.#onRead(bytes as Buffer, length);
        return true;
      },
    };
    return connectTcp({ host, port, noDelay: true, allowHalfOpen: true, onread });
  }

  #openTls({ host, port, verify }: ServiceTarget): Socket {
    const socket = connectTls({
      host,
      port,
      rejectUnauthorized: verify,
      ALPNProtocols: ["http/1.1"],
      ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    });
    socket.setNoDelay(true);
    socket.on("data", (bytes: Buffer) => {
      if (!this.#stream.write(bytes)) socket.pause();
    });
    return socket;
  }

  #listen(connectEvent: string): void {
    const socket = this.#socket;
    const stream = this.#stream;
    socket.once("connect", () => {
      this.#hasTcp = true;
    });
    socket.once(connectEvent, () => {
      this.#isConnected = true;
      clearTimeout(this.#connectTimer);
    });
    socket.on("drain", () => stream.resume());
    socket.on("end", () => {
      this.#hasEnded = true;
      stream.end();
    });
    socket.on("error", (error: NodeJS.ErrnoException) => {
      if (!this.#isConnected) this.#code = this.#hasTcp ? ResetCode.TlsFailed : codeOf(error);
    });
    socket.on("close", () => {
      clearTimeout(this.#connectTimer);
      if (!this.#isConnected) stream.delivered = 0;
      // After a graceful end, queued bytes are still on their way to the relay; further ones for the service reset it.
      if (this.#hasEnded) stream.resume();
      else stream.reset(this.#code);
    });
  }

  #onRead(bytes: Buffer, length: number): void {
    const stream = this.#stream;
    const view = bytes.subarray(0, length);
    if (length <= COPIED_BYTES_MAX) stream.write(view);
    else if (bytes === this.#ownReads) {
      stream.write(view);
      if (stream.isRetaining) this.#ownReads = Buffer.allocUnsafeSlow(READ_BYTES);
    } else {
      stream.write(Buffer.from(view));
      this.#ownReads = Buffer.allocUnsafeSlow(READ_BYTES);
    }
    if (stream.writableNeedDrain) this.#socket.pause();
  }
}

function codeOf({ code }: NodeJS.ErrnoException): ResetCodeId {
  if (code === "ECONNREFUSED") return ResetCode.Refused;
  return code === "ETIMEDOUT" ? ResetCode.TimedOut : ResetCode.Unreachable;
}
