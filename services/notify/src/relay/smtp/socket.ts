// Sockets to SMTP servers: TCP and TLS with a timeout, and the error of a connection.
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import type { SmtpReply } from "./reply.ts";

/** Use of TLS: from the first byte; by STARTTLS with a verified certificate; by STARTTLS if offered; not at all. */
export type TlsMode = "implicit" | "required" | "opportunistic" | "off";

/** A server to connect to. */
export interface SmtpEndpoint {
  host: string;
  port: number;
  tls: TlsMode;
  /** Trusted certificate authorities in PEM. Default: those of Node. */
  ca?: readonly string[] | undefined;
  user?: string | undefined;
  pass?: string | undefined;
  /** Name in the certificate. Default: `host`. */
  servername?: string | undefined;
}

/** Steps of a connection, in messages. */
export type Step =
  | "connect"
  | "greeting"
  | "EHLO"
  | "STARTTLS"
  | "AUTH"
  | "MAIL"
  | "RCPT"
  | "DATA"
  | "content";

/** The connection failed, or the server did not accept it; `reply` is set if the server gave the reason. */
export class SmtpConnectionError extends Error {
  readonly step: Step;
  readonly reply: SmtpReply | undefined;
  /** True if the whole content was sent and the reply did not arrive. */
  readonly mayHaveArrived: boolean;

  constructor(
    step: Step,
    message: string,
    options: { reply?: SmtpReply; mayHaveArrived?: boolean } = {},
  ) {
    super(message);
    this.name = "SmtpConnectionError";
    this.step = step;
    this.reply = options.reply;
    this.mayHaveArrived = options.mayHaveArrived ?? false;
  }
}

/** Connects to a server. Throws SmtpConnectionError. */
export async function connectSocket(endpoint: SmtpEndpoint, timeoutMs: number): Promise<Socket> {
  const { host, port } = endpoint;
  const isImplicit = endpoint.tls === "implicit";
  const socket = isImplicit
    ? connectTls({ ...toTlsOptions(endpoint), host, port })
    : connectTcp({ host, port });
  await waitForEvent(socket, isImplicit ? "secureConnect" : "connect", timeoutMs, "connect");
  return socket;
}

/** Performs a TLS handshake on a connected socket. Throws SmtpConnectionError. */
export async function upgradeSocket(
  socket: Socket,
  endpoint: SmtpEndpoint,
  timeoutMs: number,
): Promise<Socket> {
  const secure = connectTls({ ...toTlsOptions(endpoint), socket });
  await waitForEvent(secure, "secureConnect", timeoutMs, "STARTTLS");
  return secure;
}

/** Returns the code of a system error, or the message of another one. */
export function describeFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const code = "code" in error && typeof error.code === "string" ? error.code : undefined;
  return code === undefined ? error.message : code;
}

function toTlsOptions({ host, servername, tls, ca }: SmtpEndpoint) {
  const name = servername ?? host;
  return {
    minVersion: "TLSv1.2" as const,
    // RFC 6066 section 3: no IP addresses in SNI.
    ...(isIP(name) === 0 ? { servername: name } : {}),
    // Encryption without a verified certificate is still better than plain text, which is the alternative.
    rejectUnauthorized: tls !== "opportunistic",
    ...(ca === undefined ? {} : { ca: [...ca] }),
  };
}

function waitForEvent(
  socket: Socket,
  event: "connect" | "secureConnect",
  timeoutMs: number,
  step: Step,
): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer);
      socket.off(event, succeed).off("error", onError).off("close", onClose);
    };
    const fail = (message: string): void => {
      stop();
      // A late error of a socket without listeners would end the process.
      socket.on("error", () => {});
      socket.destroy();
      reject(new SmtpConnectionError(step, message));
    };
    const succeed = (): void => {
      stop();
      resolve();
    };
    const onError = (error: Error): void => fail(describeFailure(error));
    const onClose = (): void => fail("the connection was closed");
    const timer = setTimeout(() => fail(`not connected within ${timeoutMs} ms`), timeoutMs);
    socket.on(event, succeed).on("error", onError).on("close", onClose);
  });
}
