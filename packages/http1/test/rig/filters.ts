// Filters of the proxy process, by name: `/f/NAME/PORT/path`.
import {
  type ContentFilter,
  type ContentOutput,
  type ContentSource,
  type Exchange,
  type ResponseDraft,
  type Tunnel,
  sendContent,
} from "../../src/index.ts";

/** State of a request in the proxy process. */
export interface State {
  failures: string[];
  tunnel: Tunnel | null;
}

/** Notes of taps, filters and sources for `/state`. */
export const seen: string[] = [];

type CreateFilters = (exchange: Exchange<State>, draft: ResponseDraft) => ContentFilter[];

/** Passes everything on and notes it. */
class Observer implements ContentFilter {
  #bytes = 0;

  onBytes(bytes: Buffer, output: ContentOutput): void {
    this.#bytes += bytes.length;
    output.write(bytes);
  }

  onEnd(output: ContentOutput): void {
    seen.push(`response complete ${this.#bytes}`);
    output.end();
  }

  onAbort(): void {
    seen.push("response aborted");
  }
}

const toUpper: ContentFilter = {
  onBytes: (bytes, output) => output.write(Buffer.from(bytes.toString("latin1").toUpperCase())),
  onEnd: (output) => output.end(),
};

/** Doubles each byte asynchronously and pauses the upstream while it holds more than 64 KiB. */
class Doubler implements ContentFilter {
  #held: Buffer[] = [];
  #heldBytes = 0;
  #isWorking = false;
  #isEnded = false;
  #isBlocked = false;
  #isGone = false;

  onBytes(bytes: Buffer, output: ContentOutput): void {
    this.#held.push(Buffer.from(bytes));
    this.#heldBytes += bytes.length;
    if (this.#heldBytes > 65_536) output.pause();
    if (this.#heldBytes > 65_536 * 3) seen.push(`held ${this.#heldBytes}`);
    this.#work(output);
  }

  onEnd(output: ContentOutput): void {
    this.#isEnded = true;
    this.#work(output);
  }

  onDrain(output: ContentOutput): void {
    this.#isBlocked = false;
    this.#work(output);
  }

  onAbort(): void {
    this.#isGone = true;
    seen.push("doubler aborted");
  }

  #work(output: ContentOutput): void {
    if (this.#isWorking || this.#isBlocked || this.#isGone) return;
    const bytes = this.#held.shift();
    if (bytes === undefined) {
      if (this.#isEnded) output.end();
      return;
    }
    this.#isWorking = true;
    setImmediate(() => {
      this.#isWorking = false;
      const doubled = Buffer.allocUnsafe(bytes.length * 2);
      for (let at = 0; at < bytes.length; at++) {
        doubled[at * 2] = bytes[at]!;
        doubled[at * 2 + 1] = bytes[at]!;
      }
      this.#heldBytes -= bytes.length;
      if (this.#heldBytes <= 65_536) output.resume();
      this.#isBlocked = !output.write(doubled);
      this.#work(output);
    });
  }
}

/** Collects the content, then sets the status and the length, or answers by itself. */
class Collector implements ContentFilter {
  readonly holdsHead = true;
  readonly #exchange: Exchange<State>;
  readonly #draft: ResponseDraft;
  readonly #pieces: Buffer[] = [];

  constructor(exchange: Exchange<State>, draft: ResponseDraft) {
    this.#exchange = exchange;
    this.#draft = draft;
  }

  onBytes(bytes: Buffer): void {
    this.#pieces.push(Buffer.from(bytes));
  }

  onEnd(output: ContentOutput): void {
    const body = Buffer.concat(this.#pieces);
    setImmediate(() => {
      if (body.toString().startsWith("answer")) {
        this.#exchange.respond({ status: 502, body: "replaced by the filter" });
        return;
      }
      this.#draft.status = 203;
      this.#draft.headers.push(["X-Collected", String(body.length)]);
      this.#draft.contentLength = body.length;
      output.write(body);
      output.end();
    });
  }

  onAbort(): void {
    seen.push("collector aborted");
  }
}

const filters: Record<string, CreateFilters> = {
  observe: (_, draft) => {
    seen.push(`head ${draft.status} ${draft.contentLength} ${draft.hasContent}`);
    return [new Observer()];
  },
  upper: (_, draft) => {
    draft.headers.push(["X-Case", "upper"]);
    return [toUpper, new Observer()];
  },
  double: (_, draft) => {
    draft.contentLength = -1;
    return [new Doubler()];
  },
  collect: (exchange, draft) => [new Collector(exchange, draft)],
  trailers: (_, draft) => {
    draft.contentLength = -1;
    return [
      {
        onBytes: (bytes, output) => void output.write(bytes),
        onEnd: (output) => output.end([["X-Sum", "own"]]),
      },
      toUpper,
    ];
  },
  complete: (_, draft) => {
    draft.contentLength = -1;
    return [
      {
        onBytes: (bytes, output) => void output.write(bytes),
        onEnd: (output) => output.end(),
        onTruncated: (output) => {
          output.write(Buffer.from("[broken off]"));
          output.end();
          return true;
        },
      },
      new Observer(),
    ];
  },
  none: () => [],
  throw: () => [
    {
      onBytes() {
        throw new Error("thrown by the filter");
      },
      onEnd: (output) => output.end(),
    },
  ],
  fail: () => [
    {
      holdsHead: true,
      onBytes(_bytes, output) {
        setImmediate(() => output.fail(new Error("failed later")));
      },
      onEnd() {},
    },
  ],
  first5: (_, draft) => {
    draft.contentLength = 5;
    return [
      {
        onBytes(bytes, output) {
          output.write(bytes.subarray(0, 5));
          output.end();
        },
        onEnd() {},
      },
    ];
  },
  short: () => [{ onBytes() {}, onEnd: (output) => output.end() }],
  "bad-field": (_, draft) => {
    draft.headers.push(["X", "line\nbreak"]);
    return [];
  },
  stored: (exchange, draft) => {
    if (draft.status === 304) {
      const head = Buffer.from(
        "HTTP/1.1 200 OK\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 6\r\n",
      );
      exchange.respond({ status: 200, head, body: Buffer.from("stored"), isDated: true });
    } else if (draft.status >= 500) {
      sendContent(exchange, { status: 200, contentLength: STREAM_BYTES }, new Zeros(STREAM_BYTES));
    }
    return [];
  },
};

/** Chooses filters by name. */
export function chooseFilters(
  name: string,
  exchange: Exchange<State>,
  draft: ResponseDraft,
): ContentFilter[] {
  return filters[name]!(exchange, draft);
}

/** More than the buffers of two sockets take: the sender notices a client that leaves. */
export const STREAM_BYTES = 20_000_000;

/** Zeros in pieces, every third of them later. */
export class Zeros implements ContentSource {
  #left: number;
  #count = 0;

  constructor(size: number) {
    this.#left = size;
  }

  read(): Buffer | null | Promise<Buffer | null> {
    const bytes = this.#left === 0 ? null : Buffer.alloc(Math.min(this.#left, 50_000), "0");
    this.#left -= bytes?.length ?? 0;
    if (this.#count++ % 3 !== 0) return bytes;
    return new Promise((resolve) => setImmediate(() => resolve(bytes)));
  }

  close(): void {
    seen.push(`source closed ${this.#left}`);
  }
}
