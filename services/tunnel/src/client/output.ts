// Output of the client: a header with its addresses, one line per request, changes of the connection.
import type { RequestEvent, RequestEvents, Welcome } from "../frame/messages.ts";
import type { ClientListener } from "./tunnel-client.ts";

/** Options of {@link createOutput}. */
export interface OutputOptions {
  /** One JSON object per line. */
  json: boolean;
  /** Colours and local times. */
  isTerminal: boolean;
  relay: string;
  /** Targets as typed, in the order of the tunnels. */
  targets: readonly string[];
  /** URL of the inspector, if it runs. */
  inspector: string | undefined;
  write: (text: string) => void;
  now: () => Date;
}

/** Writes the client's events. Lines of one batch are written at once. */
export function createOutput(options: OutputOptions): ClientListener {
  return options.json ? new JsonOutput(options) : new TextOutput(options);
}

class TextOutput implements ClientListener {
  readonly #options: OutputOptions;
  #hasHeader = false;
  #urls: string[] = [];

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  onWelcome(welcome: Welcome): void {
    const urls = welcome.tunnels.map((grant) =>
      "error" in grant ? `refused: ${clean(grant.error.detail)}` : clean(grant.url),
    );
    const isSame = this.#hasHeader && urls.every((url, index) => url === this.#urls[index]);
    this.#urls = urls;
    if (isSame) {
      this.#note("connected again");
      return;
    }
    this.#hasHeader = true;
    this.#options.write(this.#formatHeader(urls));
  }

  onRequests({ requests, dropped }: RequestEvents): void {
    let text = requests.map((request) => this.#formatRequest(request)).join("");
    if (dropped > 0) text += `${this.#time()} … ${dropped} more requests\n`;
    this.#options.write(text);
  }

  onLost(reason: string, retryMs: number): void {
    this.#note(`${clean(reason)}; next attempt in ${(retryMs / 1_000).toFixed(1)} s`);
  }

  onRefused(reason: string): void {
    this.#note(`stopped: ${clean(reason)}`);
  }

  #note(text: string): void {
    this.#options.write(`${this.#time()} ${text}\n`);
  }

  #formatHeader(urls: readonly string[]): string {
    const { targets, relay, inspector, isTerminal } = this.#options;
    const width = Math.max(...urls.map((url) => url.length));
    const lines = urls.map((url, index) => {
      const shown = isTerminal ? `\u001b[1m${url.padEnd(width)}\u001b[22m` : url.padEnd(width);
      return `${shown} -> ${targets[index] ?? ""}\n`;
    });
    const extra = inspector === undefined ? "" : `inspector ${inspector}\n`;
    return `${lines.join("")}relay     ${relay}\n${extra}\n`;
  }

  /** Time, method, path, status, duration. */
  #formatRequest(request: RequestEvent): string {
    const { isTerminal } = this.#options;
    const status = request.status === 0 ? "---" : String(request.status);
    const shown = isTerminal ? `\u001b[${colourOf(request.status)}m${status}\u001b[39m` : status;
    const time = formatTime(new Date(request.time), isTerminal);
    const method = clean(request.method).padEnd(7);
    const path = clean(request.path).padEnd(40);
    return `${time} ${method} ${path} ${shown} ${formatMs(request.latency_ms)}\n`;
  }

  #time(): string {
    const { now, isTerminal } = this.#options;
    return formatTime(now(), isTerminal);
  }
}

class JsonOutput implements ClientListener {
  readonly #options: OutputOptions;

  constructor(options: OutputOptions) {
    this.#options = options;
  }

  onWelcome({ relay, session, tunnels }: Welcome): void {
    const { targets, inspector } = this.#options;
    this.#write({
      type: "connected",
      relay,
      session,
      inspector,
      tunnels: tunnels.map((grant, index) => ({ target: targets[index], ...grant })),
    });
  }

  onRequests({ requests, dropped }: RequestEvents): void {
    const lines = requests.map((request) => JSON.stringify({ type: "request", ...request }));
    if (dropped > 0) lines.push(JSON.stringify({ type: "dropped", requests: dropped }));
    this.#options.write(`${lines.join("\n")}\n`);
  }

  onLost(reason: string, retryMs: number): void {
    this.#write({ type: "disconnected", reason, retry_ms: retryMs });
  }

  onRefused(reason: string): void {
    this.#write({ type: "refused", reason });
  }

  #write(event: Record<string, unknown>): void {
    const time = this.#options.now().toISOString();
    this.#options.write(`${JSON.stringify({ time, ...event })}\n`);
  }
}

function formatTime(time: Date, isLocal: boolean): string {
  if (!isLocal) return Number.isNaN(time.getTime()) ? "-" : time.toISOString();
  return [time.getHours(), time.getMinutes(), time.getSeconds()]
    .map((part) => String(part).padStart(2, "0"))
    .join(":");
}

function formatMs(ms: number): string {
  return ms < 10
    ? `${ms.toFixed(1)}ms`
    : ms < 10_000
      ? `${Math.round(ms)}ms`
      : `${(ms / 1_000).toFixed(1)}s`;
}

function colourOf(status: number): number {
  if (status >= 500 || status === 0) return 31;
  if (status >= 400) return 33;
  return status >= 300 ? 36 : 32;
}

/** Text of the relay must not control the terminal. */
function clean(text: string): string {
  // oxlint-disable-next-line no-control-regex -- control characters are what is removed
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, "?");
}
