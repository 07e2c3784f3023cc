// `platform-gate replay --shadow`: sends a recording to a candidate and compares the responses.
import { REDACTED } from "@platform/kernel/log";
import {
  type RecordedBody,
  type RecordedExchange,
  type RecordedFields,
  readRecordedExchange,
} from "../recording/recorded-exchange.ts";
import { RECORDED_LINE_BYTES_MAX } from "../recording/recording-log.ts";
import { Redactor } from "../recording/redactor.ts";
import { Candidate, type CandidateResponse } from "./candidate.ts";
import { compareResponses, type Difference, IGNORED_FIELDS, type Ignored } from "./compare.ts";
import { readLogLines } from "../recording/log-lines.ts";
import type { Finding, Quantiles, ReplayResult } from "./report.ts";

/** Durations that are kept for quantiles. */
const SAMPLES_MAX = 100_000;

/** Options of {@link replayShadow}. */
export interface ReplayOptions {
  log: string;
  target: URL;
  /** Requests at a time; 1 keeps their order. */
  concurrency: number;
  timeoutMs: number;
  host: "client" | "target";
  headers: RecordedFields;
  /** Empty: all. */
  methods: readonly string[];
  /** Requests to send at most; undefined: all. */
  limit: number | undefined;
  ignoredHeaders: readonly string[];
  ignoredMembers: readonly string[];
  /** Names that the recording redacted, too. */
  redactedNames: readonly string[];
  /** Findings to keep. */
  shownMax: number;
}

/** Replays a recording. Throws if it cannot be read. */
export async function replayShadow(options: ReplayOptions): Promise<ReplayResult> {
  const { target, timeoutMs, host, headers, concurrency } = options;
  const candidate = new Candidate({
    origin: target,
    host,
    headers,
    timeoutMs,
    connectionsMax: concurrency,
  });
  const run = new ReplayRun(options, candidate);
  try {
    const lines = run.listRequests();
    const work = async (): Promise<void> => {
      for await (const [line, recorded] of share(lines)) await run.replay(line, recorded);
    };
    await Promise.all(Array.from({ length: concurrency }, work));
  } finally {
    candidate.close();
  }
  return run.summarize();
}

/** One replay with its counts. */
class ReplayRun {
  readonly #options: ReplayOptions;
  readonly #candidate: Candidate;
  readonly #redactor: Redactor;
  readonly #ignored: Ignored;
  readonly #skipped = new Map<string, number>();
  readonly #findings: Finding[] = [];
  readonly #recordedMs: number[] = [];
  readonly #replayedMs: number[] = [];
  #sent = 0;
  #same = 0;
  #different = 0;
  #failed = 0;
  #bodiesNotCompared = 0;
  #withoutCredentials = 0;

  constructor(options: ReplayOptions, candidate: Candidate) {
    this.#options = options;
    this.#candidate = candidate;
    this.#redactor = new Redactor(options.redactedNames);
    const lower = (name: string): string => name.toLowerCase();
    this.#ignored = {
      headers: new Set([...IGNORED_FIELDS, ...options.ignoredHeaders.map(lower)]),
      members: new Set(options.ignoredMembers.map((place) => place.replace(/^\$\.?/, ""))),
    };
  }

  /** The requests of the recording that can be sent. */
  async *listRequests(): AsyncGenerator<[line: number, recorded: RecordedExchange]> {
    const { log, limit, methods } = this.#options;
    let count = 0;
    for await (const { number, text } of readLogLines(log, RECORDED_LINE_BYTES_MAX)) {
      if (text?.trim() === "") continue;
      const recorded = text === undefined ? undefined : readRecordedExchange(text);
      if (recorded === undefined) this.#skip("lines that are not of a recording");
      else if (methods.length > 0 && !methods.includes(recorded.request.method)) {
        this.#skip("requests of other methods");
      } else if ("omitted" in recorded.request.body) {
        this.#skip("requests whose body is not recorded");
      } else {
        yield [number, recorded];
        if (++count === limit) return;
      }
    }
  }

  /** Sends one request and compares the response. */
  async replay(line: number, recorded: RecordedExchange): Promise<void> {
    const { request } = recorded;
    this.#sent++;
    if (hasRedacted(recorded, this.#options.headers)) this.#withoutCredentials++;
    let response: CandidateResponse;
    try {
      response = await this.#candidate.send(recorded, readBody(request.body));
    } catch (error) {
      this.#failed++;
      this.#keep(line, recorded, [], error instanceof Error ? error.message : String(error));
      return;
    }
    if (this.#recordedMs.length < SAMPLES_MAX) {
      this.#recordedMs.push(recorded.latency_ms);
      this.#replayedMs.push(response.durationMs);
    }
    const { body } = recorded.response;
    if ("omitted" in body && body.sha256 === undefined) this.#bodiesNotCompared++;
    const options = { ignored: this.#ignored, redactor: this.#redactor };
    const differences = await compareResponses(recorded, response, options);
    if (differences.length === 0) {
      this.#same++;
      return;
    }
    this.#different++;
    this.#keep(line, recorded, differences);
  }

  summarize(): ReplayResult {
    return {
      log: this.#options.log,
      target: this.#options.target.origin,
      replayed: this.#sent,
      same: this.#same,
      different: this.#different,
      failed: this.#failed,
      skipped: Object.fromEntries(this.#skipped),
      bodiesNotCompared: this.#bodiesNotCompared,
      withoutCredentials: this.#withoutCredentials,
      latency: {
        recorded: readQuantiles(this.#recordedMs),
        replayed: readQuantiles(this.#replayedMs),
      },
      findings: this.#findings.toSorted((one, other) => one.line - other.line),
    };
  }

  #skip(reason: string): void {
    this.#skipped.set(reason, (this.#skipped.get(reason) ?? 0) + 1);
  }

  #keep(
    line: number,
    { request: { method, target } }: RecordedExchange,
    differences: readonly Difference[],
    failure?: string,
  ): void {
    if (this.#findings.length >= this.#options.shownMax) return;
    this.#findings.push({
      line,
      method,
      target,
      differences,
      ...(failure === undefined ? {} : { failure }),
    });
  }
}

/** Lets several loops consume one generator without ending it when one of them ends. */
function share<T>(items: AsyncGenerator<T>): AsyncIterable<T> {
  return { [Symbol.asyncIterator]: () => ({ next: () => items.next() }) };
}

function readBody(body: RecordedBody): Buffer {
  if ("text" in body) return Buffer.from(body.text);
  return "base64" in body ? Buffer.from(body.base64, "base64") : Buffer.alloc(0);
}

function hasRedacted({ request }: RecordedExchange, set: RecordedFields): boolean {
  const own = new Set(set.map(([name]) => name.toLowerCase()));
  return request.headers.some(
    ([name, value]) => value.includes(REDACTED) && !own.has(name.toLowerCase()),
  );
}

function readQuantiles(samples: readonly number[]): Quantiles {
  const sorted = samples.toSorted((one, other) => one - other);
  const at = (share: number): number | null =>
    sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? null;
  return { p50: at(0.5), p99: at(0.99) };
}
