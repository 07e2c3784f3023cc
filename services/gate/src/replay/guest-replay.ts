// `platform-gate replay --middleware`: passes a recording by a guest, without any request.
import { readFile } from "node:fs/promises";
import { Feature, HttpGuest, compileHttpModule } from "@platform/wasm/http";
import { escapeControls } from "../recording/escape-controls.ts";
import { readLogLines } from "../recording/log-lines.ts";
import {
  type RecordedExchange,
  readRecordedExchange,
  restoreOriginal,
} from "../recording/recorded-exchange.ts";
import { RecordedMessages } from "../recording/recorded-messages.ts";
import { RECORDED_LINE_BYTES_MAX } from "../recording/recording-log.ts";
import { GUEST_LIMITS_DEFAULT } from "../shared-state/index.ts";

/** Options of {@link replayThroughGuest}. */
export interface GuestReplayOptions {
  readonly log: string;
  readonly middleware: string;
  /** Result of `get_config`. */
  readonly config: string;
  /** Differences to keep. */
  readonly shownMax: number;
  /** Requests at most; undefined: all. */
  readonly limit: number | undefined;
}

/** One recorded exchange with the changes of the guest. */
interface GuestFinding {
  readonly line: number;
  readonly method: string;
  readonly target: string;
  readonly changes: readonly string[];
}

/** Result of a replay. */
export interface GuestReplayResult {
  log: string;
  middleware: string;
  replayed: number;
  unchanged: number;
  changed: number;
  answered: number;
  failed: number;
  fuel: { p50: number | null; p99: number | null };
  findings: GuestFinding[];
}

/** Replays a recording. Throws if a file cannot be used. */
export async function replayThroughGuest(options: GuestReplayOptions): Promise<GuestReplayResult> {
  const replay = new GuestReplay(await readFile(options.middleware), options);
  for await (const { number, text } of readLogLines(options.log, RECORDED_LINE_BYTES_MAX)) {
    const recorded = text === undefined ? undefined : readRecordedExchange(text);
    if (recorded === undefined) continue;
    await replay.pass(number, restoreOriginal(recorded));
    if (replay.result.replayed === options.limit) break;
  }
  return replay.summarize();
}

class GuestReplay {
  readonly result: GuestReplayResult;
  readonly #options: GuestReplayOptions;
  readonly #create: () => HttpGuest;
  readonly #fuel: number[] = [];
  #guest: HttpGuest;

  constructor(bytes: Buffer, options: GuestReplayOptions) {
    const module = compileHttpModule(bytes);
    this.#options = options;
    this.#create = () =>
      new HttpGuest(module, {
        config: Buffer.from(options.config),
        fuelPerCall: GUEST_LIMITS_DEFAULT.fuelPerCall,
        log: () => undefined,
        isLogged: () => false,
      });
    this.#guest = this.#create();
    this.result = {
      log: options.log,
      middleware: options.middleware,
      replayed: 0,
      unchanged: 0,
      changed: 0,
      answered: 0,
      failed: 0,
      fuel: { p50: null, p99: null },
      findings: [],
    };
  }

  async pass(line: number, recorded: RecordedExchange): Promise<void> {
    const { result } = this;
    result.replayed++;
    try {
      const { changes, isAnswer } = await this.#call(recorded);
      if (isAnswer) result.answered++;
      else if (changes.length === 0) result.unchanged++;
      else result.changed++;
      if (changes.length > 0) this.#keep(line, recorded, changes);
    } catch (error) {
      result.failed++;
      this.#keep(line, recorded, [
        `failed: ${error instanceof Error ? error.message : String(error)}`,
      ]);
      this.#guest = this.#create();
    }
    this.#guest.endRequest();
  }

  summarize(): GuestReplayResult {
    const sorted = this.#fuel.toSorted((a, b) => a - b);
    const at = (share: number): number | null =>
      sorted[Math.ceil(sorted.length * share) - 1] ?? null;
    return { ...this.result, fuel: { p50: at(0.5), p99: at(0.99) } };
  }

  async #call(recorded: RecordedExchange): Promise<{ changes: string[]; isAnswer: boolean }> {
    const guest = this.#guest;
    const request = RecordedMessages.forRequest(recorded);
    const verdict = await guest.handleRequest(request);
    this.#fuel.push(guest.fuelUsed);
    if (!verdict.next) return { changes: [`answered with ${request.status}`], isAnswer: true };
    const changes = describeRequest(recorded, request, guest.requestBody);
    const response = new RecordedMessages(recorded);
    if ((guest.features & Feature.BufferResponse) !== 0) response.buffer();
    await guest.handleResponse(response, verdict.context, false);
    this.#fuel.push(guest.fuelUsed);
    changes.push(...describeResponse(recorded, response, guest.responseBody));
    return { changes, isAnswer: false };
  }

  #keep(line: number, { request }: RecordedExchange, changes: readonly string[]): void {
    if (this.result.findings.length >= this.#options.shownMax) return;
    const { method, target } = request;
    this.result.findings.push({ line, method, target, changes });
  }
}

function describeRequest(
  { request }: RecordedExchange,
  after: RecordedMessages,
  body: Buffer | undefined,
): string[] {
  return [
    ...compare("method", request.method, after.method),
    ...compare("target", request.target, after.uri),
    ...compareFields("request", request.headers, after.requestFields.list()),
    ...(body === undefined ? [] : [`request body: ${body.length} bytes`]),
  ];
}

function describeResponse(
  { response }: RecordedExchange,
  after: RecordedMessages,
  body: Buffer | undefined,
): string[] {
  return [
    ...compare("status", String(response.status), String(after.status)),
    ...compareFields("response", response.headers, after.responseFields.list()),
    ...(body === undefined ? [] : [`response body: ${body.length} bytes`]),
  ];
}

function compare(what: string, before: string, after: string): string[] {
  return before === after ? [] : [`${what}: ${before} -> ${after}`];
}

function compareFields(
  what: string,
  before: readonly (readonly [string, string])[],
  after: readonly (readonly [string, string])[],
): string[] {
  const write = ([name, value]: readonly [string, string]): string =>
    `${name.toLowerCase()}: ${value}`;
  const old = before.map(write);
  const fresh = after.map(write);
  return [
    ...old.filter((line) => !fresh.includes(line)).map((line) => `${what} - ${line}`),
    ...fresh.filter((line) => !old.includes(line)).map((line) => `${what} + ${line}`),
  ];
}

/** The result as text. */
export function formatGuestReport(result: GuestReplayResult): string {
  const { replayed, unchanged, changed, answered, failed, fuel, findings } = result;
  const lines = findings.map(({ line, method, target, changes }) => {
    const shown = changes.map((change) => `  ${escapeControls(change)}\n`);
    return `line ${line}: ${escapeControls(`${method} ${target}`)}\n${shown.join("")}`;
  });
  const hidden = changed + answered + failed - findings.length;
  if (hidden > 0) lines.push(`… and ${hidden} more\n`);
  const counts = `${replayed} exchanges: ${unchanged} unchanged, ${changed} changed, ${answered} answered, ${failed} failed`;
  return `${lines.join("")}${counts}\nfuel of a call: p50 ${fuel.p50 ?? "-"}, p99 ${fuel.p99 ?? "-"}\n`;
}
