// Opens a connection to the relay: TCP or TLS, then the WebSocket handshake.
import { randomBytes } from "node:crypto";
import { connect as connectTcp, type Socket } from "node:net";
import { connect as connectTls, type ConnectionOptions } from "node:tls";
import { Known, Method, Parse, ResponseParser } from "@platform/http1";
import { isLoopback } from "@platform/kernel/network";
import { SUBPROTOCOL } from "../frame/format.ts";
import { computeAccept } from "../frame/websocket.ts";

/** Options of {@link dialRelay}. */
export interface DialOptions {
  /** `ws:` or `wss:` URL. */
  relay: string;
  token: string | undefined;
  /** PEM roots for the relay. */
  ca: string | undefined;
  timeoutMs: number;
  signal: AbortSignal;
}

/** An open connection after the handshake. */
export interface Dialed {
  readonly socket: Socket;
  readonly rest: Buffer;
  /** Encrypted, or within this machine. */
  readonly isPrivate: boolean;
}

/** The relay could not be reached, or refused the connection. */
export class DialError extends Error {
  /** HTTP status of a refusal, 0 if the relay could not be reached. */
  readonly status: number;
  /** Seconds to wait as asked by the relay. */
  readonly retryAfterSeconds: number;

  constructor(message: string, status = 0, retryAfterSeconds = 0) {
    super(message);
    this.name = "DialError";
    this.status = status;
    this.retryAfterSeconds = retryAfterSeconds;
  }
}

const ANSWER_BYTES_MAX = 65_536;

/** Dials the relay. Rejects with a `DialError`. */
export async function dialRelay(options: DialOptions): Promise<Dialed> {
  const url = new URL(options.relay);
  const socket = openSocket(url, options.ca);
  // Errors are also reported to the current step.
  socket.on("error", () => {});
  const stop = (): void => void socket.destroy(new DialError("stopped"));
  const timer = setTimeout(
    () => socket.destroy(new DialError(`no answer within ${options.timeoutMs / 1_000} s`)),
    options.timeoutMs,
  );
  options.signal.addEventListener("abort", stop);
  try {
    return await shakeHands(socket, url, options.token);
  } catch (error) {
    socket.destroy();
    if (error instanceof DialError) throw error;
    const { code, message } = error as NodeJS.ErrnoException;
    throw new DialError(`${url.host}: ${code === "ECONNREFUSED" ? "connection refused" : message}`);
  } finally {
    clearTimeout(timer);
    options.signal.removeEventListener("abort", stop);
  }
}

function openSocket(url: URL, ca: string | undefined): Socket {
  const isSecure = url.protocol === "wss:";
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const port = url.port === "" ? (isSecure ? 443 : 80) : Number(url.port);
  if (!isSecure) return connectTcp({ host, port, noDelay: true });
  const options: ConnectionOptions = {
    host,
    port,
    ALPNProtocols: ["http/1.1"],
    ...(ca === undefined ? {} : { ca }),
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
  };
  const socket = connectTls(options);
  socket.setNoDelay(true);
  return socket;
}

async function shakeHands(socket: Socket, url: URL, token: string | undefined): Promise<Dialed> {
  const key = randomBytes(16).toString("base64");
  socket.write(formatRequest(url, key, token));
  const { parser, rest } = await readHead(socket);
  if (parser.status !== 101) throw await readRefusal(socket, parser, rest);
  const accept = parser.fields.get(Known.SecWebsocketAccept);
  const protocol = parser.fields.get(Known.SecWebsocketProtocol);
  if (accept !== computeAccept(key) || protocol !== SUBPROTOCOL) {
    throw new DialError(`${url.host} is not a relay of this version (${SUBPROTOCOL})`, 400);
  }
  const isPrivate = url.protocol === "wss:" || isLoopback(socket.remoteAddress ?? "");
  return { socket, rest, isPrivate };
}

function formatRequest(url: URL, key: string, token: string | undefined): string {
  const lines = [
    `GET ${url.pathname}${url.search} HTTP/1.1`,
    `Host: ${url.host}`,
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${key}`,
    `Sec-WebSocket-Protocol: ${SUBPROTOCOL}`,
  ];
  if (token !== undefined) lines.push(`Authorization: Bearer ${token}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
}

function readHead(socket: Socket): Promise<{ parser: ResponseParser; rest: Buffer }> {
  const parser = new ResponseParser();
  parser.expect(Method.GET);
  return new Promise((resolve, reject) => {
    const settle = (): void => {
      socket.off("data", onData);
      socket.off("error", reject);
      socket.off("close", onClose);
    };
    const onData = (bytes: Buffer): void => {
      const status = parser.execute(bytes, 0, bytes.length);
      if (status === Parse.NeedsMore) return;
      settle();
      if (status === Parse.Refused) reject(new DialError("the relay's answer is not HTTP", 400));
      else resolve({ parser, rest: Buffer.from(bytes.subarray(parser.next)) });
    };
    const onClose = (): void => {
      settle();
      reject(new DialError("the relay closed the connection"));
    };
    socket.on("data", onData);
    socket.once("error", reject);
    socket.once("close", onClose);
  });
}

/** The refusal's detail, from its problem document. */
async function readRefusal(
  socket: Socket,
  parser: ResponseParser,
  rest: Buffer,
): Promise<DialError> {
  const { status } = parser;
  const retryAfterSeconds = Number(parser.fields.get(Known.RetryAfter) ?? 0) || 0;
  const length = Math.min(Math.max(parser.contentLength, 0), ANSWER_BYTES_MAX);
  const body = await readBytes(socket, rest, length);
  let detail = "";
  try {
    const problem = JSON.parse(body.toString("utf8")) as { detail?: unknown };
    if (typeof problem.detail === "string") ({ detail } = problem as { detail: string });
  } catch {
    // Not a problem document, for example that of a proxy.
  }
  const message = detail === "" ? `the relay answered ${status}` : `${detail} (${status})`;
  return new DialError(message, status, retryAfterSeconds);
}

async function readBytes(socket: Socket, first: Buffer, length: number): Promise<Buffer> {
  const pieces = [first];
  let size = first.length;
  if (size >= length) return first;
  for await (const piece of socket as AsyncIterable<Buffer>) {
    pieces.push(piece);
    size += piece.length;
    if (size >= length) break;
  }
  return Buffer.concat(pieces);
}
