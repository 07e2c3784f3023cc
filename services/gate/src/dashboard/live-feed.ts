// The connection of the dashboard to a gateway: reconnects once it has worked.
import { WebSocket } from "ws";

const LIVE_PATH = "/api/v1/admin/live";
const HANDSHAKE_MS = 10_000;
/** The gateway sends figures every second: longer without them, the connection is dead. */
const SILENCE_MS = 15_000;
const MESSAGE_BYTES_MAX = 1_048_576;
const RETRY_MS = [1_000, 2_000, 5_000, 10_000] as const;
const CLOSE_UNAUTHORIZED = 4401;

/** Options of {@link followLive}. */
export interface LiveFeedOptions {
  readonly url: string;
  readonly token: string | undefined;
  readonly onMessage: (data: string) => void;
  /** Called when the connection was lost; it is tried again. */
  readonly onLost: (reason: string) => void;
  readonly signal: AbortSignal;
}

/**
 * Follows the live feed until `signal` aborts. Rejects if the first connection fails, and when the gateway refuses the
 * credentials.
 */
export async function followLive(options: LiveFeedOptions): Promise<void> {
  let failures = 0;
  let hasWorked = false;
  while (!options.signal.aborted) {
    const { reason, isFinal, messages } = await connectOnce(options);
    if (options.signal.aborted) return;
    hasWorked ||= messages > 0;
    if (isFinal || !hasWorked) throw new Error(reason);
    failures = messages > 0 ? 0 : failures + 1;
    options.onLost(reason);
    await pause(RETRY_MS[Math.min(failures, RETRY_MS.length - 1)]!, options.signal);
  }
}

interface ConnectionEnd {
  reason: string;
  /** True if another attempt would end alike. */
  isFinal: boolean;
  messages: number;
}

function connectOnce({ url, token, onMessage, signal }: LiveFeedOptions): Promise<ConnectionEnd> {
  const address = `${url.replace(/^http/, "ws").replace(/\/$/, "")}${LIVE_PATH}`;
  const socket = new WebSocket(address, {
    headers: token === undefined ? {} : { Authorization: `Bearer ${token}` },
    handshakeTimeout: HANDSHAKE_MS,
    maxPayload: MESSAGE_BYTES_MAX,
    perMessageDeflate: false,
    followRedirects: false,
  });
  return new Promise((resolve) => {
    let messages = 0;
    let silence: NodeJS.Timeout | undefined;
    const listen = (): void => {
      clearTimeout(silence);
      silence = setTimeout(() => socket.terminate(), SILENCE_MS);
    };
    const onAbort = (): void => socket.terminate();
    const finish = (reason: string, isFinal = false): void => {
      clearTimeout(silence);
      signal.removeEventListener("abort", onAbort);
      socket.terminate();
      resolve({ reason, isFinal, messages });
    };
    signal.addEventListener("abort", onAbort);
    socket.on("open", listen);
    socket.on("message", (data: Buffer) => {
      messages += 1;
      listen();
      onMessage(data.toString("utf8"));
    });
    socket.on("unexpected-response", (_request, { statusCode = 0 }) => {
      finish(explainStatus(url, statusCode), statusCode < 500 && statusCode !== 429);
    });
    socket.on("error", (error: NodeJS.ErrnoException) => finish(explainError(url, error)));
    socket.on("close", (code) => {
      if (code === CLOSE_UNAUTHORIZED) finish("the token is no longer valid", true);
      else finish(`${url} closed the connection (${code})`);
    });
  });
}

function explainStatus(url: string, status: number): string {
  if (status === 401) return `${url} needs a token: set PLATFORM_GATE_AUTH_TOKEN`;
  if (status === 403) return `the token may not read the figures of ${url}: it needs gate:read`;
  return `${url} answers ${status}: is it the address of a gateway?`;
}

function explainError(url: string, { code, message }: NodeJS.ErrnoException): string {
  if (code === "ECONNREFUSED") return `nothing listens at ${url}: start the gateway, or use --url`;
  return `cannot connect to ${url}: ${message === "" ? (code ?? "unknown error") : message}`;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) return resolve();
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end);
  });
}
