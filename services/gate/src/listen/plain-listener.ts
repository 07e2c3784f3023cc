// The plain HTTP listener of a worker: challenges of certificate authorities, and redirects to https.
import {
  createServer,
  type Engine,
  type Exchange,
  Known,
  readHostName,
  type Server,
  type ServerBounds,
} from "@platform/http1";
import { isServerName } from "../shared-state/index.ts";

const CHALLENGE_PATH = "/.well-known/acme-challenge/";
const HTTPS_PORT = 443;

/** Options of {@link PlainListener}. */
export interface PlainListenerOptions {
  engine: Engine;
  /** Port of the TLS listener. */
  tlsPort: number;
  /** Key authorizations by token, as they are now. */
  readTokens: () => Readonly<Record<string, string>>;
  bounds: ServerBounds;
  onError: (error: unknown) => void;
}

/** Answers without routes, and reads no bodies. */
export class PlainListener {
  readonly #options: PlainListenerOptions;
  readonly #server: Server;

  constructor(options: PlainListenerOptions) {
    this.#options = options;
    this.#server = createServer<unknown>({
      engine: options.engine,
      handler: (exchange) => this.#answer(exchange),
      createUserData: () => undefined,
      ...options.bounds,
      onHandlerError: options.onError,
    });
  }

  /** Rejects with the system's error. */
  listen(place: { host: string; port: number; reusePort: boolean }): Promise<void> {
    return this.#server.listen(place);
  }

  /** Replaces the limits. */
  setBounds(bounds: ServerBounds): void {
    this.#server.setBounds(bounds);
  }

  /** Stops accepting, and closes all connections by the deadline. */
  drain(deadlineMs: number): Promise<void> {
    return this.#server.drain(deadlineMs);
  }

  #answer(exchange: Exchange): void {
    const { head } = exchange;
    const path = head.bytes.toString("latin1", head.pathStart, head.pathEnd) || "/";
    if (path.startsWith(CHALLENGE_PATH)) {
      const tokens = this.#options.readTokens();
      const token = path.slice(CHALLENGE_PATH.length);
      const body = Object.hasOwn(tokens, token) ? tokens[token] : undefined;
      if (body === undefined) answerText(exchange, 404, "No such challenge.\n");
      else answerText(exchange, 200, body, "application/octet-stream");
      return;
    }
    const host = readHost(exchange);
    if (!isServerName(host)) {
      answerText(exchange, 400, "Expected a Host that is a DNS name.\n");
      return;
    }
    const { tlsPort } = this.#options;
    const port = tlsPort === HTTPS_PORT ? "" : `:${tlsPort}`;
    const target = head.bytes.toString("latin1", head.pathStart, head.targetEnd) || "/";
    const location = `https://${host}${port}${target.startsWith("/") ? target : `/${target}`}`;
    exchange.respond({ status: 308, headers: [["Location", location]] });
  }
}

function readHost({ head }: Exchange): string {
  return readHostName(
    head.authorityStart === -1
      ? (head.fields.get(Known.Host) ?? "")
      : head.bytes.toString("latin1", head.authorityStart, head.authorityEnd),
  );
}

function answerText(
  exchange: Exchange,
  status: number,
  body: string,
  type = "text/plain; charset=utf-8",
): void {
  exchange.respond({ status, headers: [["Content-Type", type]], body });
}
