// Meters an answer that is a stream of events, as it passes.
import type { ContentFilter, ContentOutput, ForwardTarget } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { type AiErrorForm, describeErrorEvent } from "../../exchange/ai-error.ts";
import { TOKEN_COST_FIELD } from "../../exchange/answers.ts";
import { formatUsd } from "../price/price-table.ts";
import { EVENT_BYTES_MAX, EventSplitter, type StreamEvent } from "../shape/event-splitter.ts";
import { JsonKind, type JsonScanner } from "../shape/json-scan.ts";
import { MaskedEvents } from "../pii/mask-events.ts";
import { EventTemplate, replaceText, type Varying, viewOf } from "../shape/event-template.ts";
import {
  type EventKind,
  isDelta,
  isUsageEvent,
  listAnswerTexts,
  readEventKind,
} from "../shape/read-answer.ts";
import type { ModelCall } from "./model-call.ts";
import type { AiShape } from "../shape/ai-shape.ts";
import { JoinedText } from "./joined-text.ts";

const DONE = "[DONE]";
const COMMENT = Buffer.from(":\n\n");
/** Members that differ from event to event: the number of an event, and what OpenAI adds so that sizes tell nothing. */
const COUNT = "sequence_number";
const FILLER = "obfuscation";
/** More than this is not held: it passes, whatever follows. */
const HELD_BYTES_MAX = 1_048_576;
/** Events that come faster than one in this time are gathered, because a read and a write each cost more than their work. */
const GATHERED_BELOW_MS = 1;
/**
 * Times for which events are gathered: twice as long each time, as long as they come fast. The first ones of a stream, and
 * those of slow streams, pass at once.
 */
const GATHERING_MS = 2;
const GATHERING_MS_MAX = 8;

/** Options of {@link StreamAnswer}. */
export interface StreamAnswerOptions {
  readonly call: ModelCall;
  /** Scans one event at a time, of any stream. */
  readonly scanner: JsonScanner;
  /** The client accepts trailers. */
  readonly sendsTrailers: boolean;
  readonly errorForm: AiErrorForm;
  readonly traceId: string;
  /** Longest duration of the stream. */
  readonly durationMsMax: number;
  /** The stream ends with an error of the gateway, for the log. */
  readonly onFault: (error: PlatformError) => void;
  /** Disconnects the client, who has received nothing but the head. */
  readonly destroy: () => void;
  /**
   * Asks for the target of another model, null if there is none. The head and the first events are then held up to the first
   * content, so that a stream that fails before is replaced. Absent: nothing is held.
   */
  readonly fallBack?: (() => ForwardTarget | null | Promise<ForwardTarget | null>) | undefined;
}

/** Passes on the events of one stream, and adds what it costs: as a comment before its last event, and as a trailer. */
export class StreamAnswer implements ContentFilter {
  readonly #options: StreamAnswerOptions;
  readonly #splitter = new EventSplitter();
  readonly #masked: MaskedEvents | undefined;
  readonly #template = new EventTemplate();
  /** The texts of events that are alike. */
  readonly #text = new JoinedText();
  readonly #timer: NodeJS.Timeout;
  #output: ContentOutput | undefined;
  /** When the last events were read, or reading went on. */
  #readMs = 0;
  #gathering: NodeJS.Timeout | undefined;
  #gatheringMs = GATHERING_MS;
  /** Bytes that leave in this call: neighbors in memory are one piece. */
  #pieces: Buffer[] = [];
  /** Nothing leaves until there is content. */
  #isHeld: boolean;
  #isFinished = false;
  #hasCost = false;
  #isOver = false;

  constructor(options: StreamAnswerOptions) {
    this.#options = options;
    this.#isHeld = options.fallBack !== undefined;
    const { pii, request } = options.call;
    if (pii !== undefined) {
      const { collector } = options.call;
      this.#masked = new MaskedEvents({
        shape: request.shape,
        ...pii,
        ...(collector && { collect: (channel, text) => collector.add(channel, text) }),
      });
    }
    this.#timer = setTimeout(() => {
      const seconds = Math.round(options.durationMsMax / 1_000);
      this.#fail("upstream_timeout", `The answer took longer than ${seconds} s.`);
    }, options.durationMsMax);
    this.#timer.unref();
  }

  get holdsHead(): boolean {
    return this.#isHeld;
  }

  onBytes(bytes: Buffer, output: ContentOutput): void {
    if (this.#isOver) return;
    this.#output = output;
    const splitter = this.#splitter;
    splitter.begin(bytes);
    while (!this.#isOver) {
      if (splitter.isAtStart) splitter.at = this.#passAlike(bytes, splitter.at);
      const event = splitter.next();
      if (event === undefined) break;
      this.#onEvent(event);
    }
    if (splitter.isTooLong) {
      const detail = `The upstream sent an event of more than ${EVENT_BYTES_MAX} bytes.`;
      this.#fail("upstream_invalid_response", detail);
      return;
    }
    this.#flush();
    if (!this.#isOver) this.#pace(output);
  }

  onEnd(output: ContentOutput): void {
    if (this.#isOver) return;
    this.#output = output;
    const rest = this.#splitter.end();
    if (rest !== undefined) this.#onEvent(rest);
    if (this.#isOver) return;
    if (this.#isFinished) {
      this.#passRest();
      this.#finish();
    } else this.#fail("upstream_invalid_response", "The upstream ended the answer early.");
  }

  onTruncated(output: ContentOutput): boolean {
    this.#output = output;
    this.#fail("upstream_invalid_response", "The upstream broke off the answer.");
    return true;
  }

  onAbort(): void {
    this.#stopTimers();
    this.#isOver = true;
    this.#options.call.settle("answered");
  }

  // Of a fast stream, the events of the next milliseconds are read at once.
  #pace(output: ContentOutput): void {
    if (this.#gathering !== undefined) return;
    const nowMs = performance.now();
    const isFast = nowMs - this.#readMs < GATHERED_BELOW_MS;
    this.#readMs = nowMs;
    if (!isFast || this.#isHeld || this.#isFinished) {
      this.#gatheringMs = GATHERING_MS;
      return;
    }
    output.pause();
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined;
      this.#readMs = performance.now();
      output.resume();
    }, this.#gatheringMs);
    this.#gatheringMs = Math.min(this.#gatheringMs * 2, GATHERING_MS_MAX);
  }

  #stopTimers(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#gathering);
  }

  #onEvent(event: StreamEvent): void {
    const { raw, data } = event;
    if (data.length === 0) {
      // Comments keep the connection alive; nobody reads them.
      this.#pass(this.#masked === undefined ? raw : COMMENT);
      return;
    }
    // Its parts have arrived one after the other.
    if (this.#passAlike(raw, 0) > 0) return;
    if (data.length === DONE.length && data.toString("latin1") === DONE) {
      this.#passRest();
      this.#passLast(raw);
      return;
    }
    const { scanner } = this.#options;
    if (scanner.scan(data) && scanner.kind(0) === JsonKind.Object) {
      this.#onAnswer(scanner, event);
      return;
    }
    this.#options.call.noteUnread(data);
    if (this.#masked === undefined) this.#pass(raw);
    else this.#fail("upstream_invalid_response", "The upstream sent an event that is no JSON.");
  }

  // Passes the events that begin at `from` and differ from the one before them in their text only; returns the place after
  // them. They are neither scanned nor looked at one by one, because they are nearly all of a stream.
  #passAlike(bytes: Buffer, from: number): number {
    const template = this.#template;
    if (!template.isKnown) return from;
    const { call } = this.#options;
    const view = viewOf(bytes);
    const text = this.#text;
    text.clear();
    let last = from;
    let at = from;
    while (template.match(view, at)) {
      text.add(bytes, template.start, template.end);
      last = at;
      at = template.next;
    }
    if (at === from) return from;
    if (text.length > 0) this.#isHeld = false;
    call.noteText(text.bytes, 0, text.length);
    if (this.#masked === undefined) {
      call.collector?.add(template.channel, text.read());
      this.#pass(bytes.subarray(from, at));
      return at;
    }
    const joined = text.read();
    const raw = bytes.subarray(last, at);
    const start = template.start - last;
    const end = template.end - last;
    const { channel } = template;
    const masked = this.#masked.pushText(joined, { raw, channel, start, end });
    // Masked texts of one read leave in one event.
    if (masked === joined) this.#pass(bytes.subarray(from, at));
    else this.#pass(replaceText(raw, start, end, JSON.stringify(masked)));
    return at;
  }

  // Learns events that have one text and no usage, and in which nothing else was replaced.
  #learn(scanner: JsonScanner, { raw, dataStart }: StreamEvent): void {
    const { shape } = this.#options.call.request;
    const [text, more] = listAnswerTexts(shape, scanner);
    const usage = scanner.find(0, "usage");
    const hasUsage = usage !== -1 && scanner.kind(usage) !== JsonKind.Null;
    const isAlike = text !== undefined && more === undefined && !hasUsage && dataStart !== -1;
    if (isAlike && this.#masked?.hasEdits !== true && isDelta(shape, scanner))
      this.#template.learn(raw, listVarying(scanner, text.node, dataStart), text.channel);
    else this.#template.forget();
  }

  #passRest(): void {
    for (const rest of this.#masked?.end() ?? []) this.#pass(rest);
  }

  #onAnswer(scanner: JsonScanner, event: StreamEvent): void {
    const { call } = this.#options;
    call.readAnswer(scanner);
    call.collector?.readEvent(scanner, this.#masked === undefined);
    const kind: EventKind = readEventKind(call.request.shape, scanner);
    if (kind === "content" && call.hidesUsage && isUsageEvent(scanner)) return;
    if (kind === "last") this.#passRest();
    const pieces = this.#masked?.rewrite(event, scanner) ?? [event.raw];
    if (this.#isHeld && kind === "error") {
      const last = Buffer.concat(pieces);
      this.#fallBack(() => {
        this.#pass(last);
        this.#finish();
      });
      return;
    }
    const raw = pieces.pop()!;
    if (kind === "content") this.#learn(scanner, event);
    if (this.#isHeld && (kind !== "content" || hasText(call.request.shape, scanner)))
      this.#isHeld = false;
    for (const rest of pieces) this.#pass(rest);
    switch (kind) {
      case "last":
        this.#passLast(raw);
        return;
      case "finished":
      case "error":
        // The provider has said how it ended: with its own error, too.
        this.#isFinished = true;
        this.#pass(raw);
        return;
      case "content":
        this.#pass(raw);
        return;
      default:
        kind satisfies never;
    }
  }

  #passLast(raw: Buffer): void {
    this.#isHeld = false;
    this.#isFinished = true;
    this.#addCost();
    this.#pass(raw);
  }

  #addCost(): void {
    if (this.#hasCost) return;
    this.#hasCost = true;
    const cost = formatUsd(this.#options.call.estimateCost());
    this.#pieces.push(Buffer.from(`: ${TOKEN_COST_FIELD.toLowerCase()} ${cost}\n\n`));
  }

  #pass(raw: Buffer): void {
    const last = this.#pieces.at(-1);
    const isNext =
      last !== undefined &&
      last.buffer === raw.buffer &&
      last.byteOffset + last.length === raw.byteOffset;
    if (isNext) {
      const size = last.length + raw.length;
      this.#pieces[this.#pieces.length - 1] = Buffer.from(last.buffer, last.byteOffset, size);
    } else this.#pieces.push(raw);
  }

  #flush(): void {
    const pieces = this.#pieces;
    this.#pieces = [];
    if (this.#isHeld) {
      // The bytes are in a read buffer that is reused.
      const held = Buffer.concat(pieces);
      this.#pieces.push(held);
      if (held.length <= HELD_BYTES_MAX) return;
      this.#isHeld = false;
      this.#pieces = [];
      this.#output!.write(held);
      return;
    }
    for (const piece of pieces) this.#output!.write(piece);
  }

  // Clients that have got part of an answer must not take it for a whole one.
  #fail(code: "upstream_invalid_response" | "upstream_timeout", detail: string): void {
    if (this.#isOver) return;
    const { errorForm, traceId, onFault } = this.#options;
    if (this.#isHeld && this.#output !== undefined) {
      this.#fallBack(() => this.#fail(code, detail));
      return;
    }
    this.#options.call.collector?.giveUp();
    const error = new PlatformError(code, detail);
    onFault(error);
    if (this.#output === undefined) {
      this.#options.destroy();
      return;
    }
    this.#passRest();
    this.#pieces.push(Buffer.from(describeErrorEvent(error, errorForm, traceId)));
    this.#finish();
  }

  // Another model answers, if it can; otherwise the stream ends as it would have.
  #fallBack(end: () => void): void {
    this.#isOver = true;
    const output = this.#output!;
    const target = this.#options.fallBack!();
    const proceed = (found: ForwardTarget | null): void => {
      if (found !== null) {
        if (!output.retry(found)) output.fail(new Error("The response can no longer be replaced"));
        return;
      }
      this.#isOver = false;
      this.#isHeld = false;
      end();
    };
    if (target instanceof Promise) target.then(proceed, (error: unknown) => output.fail(error));
    else proceed(target);
  }

  #finish(): void {
    this.#stopTimers();
    const { call, sendsTrailers } = this.#options;
    this.#addCost();
    this.#flush();
    this.#isOver = true;
    call.settle("answered");
    call.collector?.complete();
    const output = this.#output!;
    if (sendsTrailers) output.end([[TOKEN_COST_FIELD, call.costText]]);
    else output.end();
  }
}

/** True for an event with a text that is not empty: those before it only announce an answer. */
function hasText(shape: AiShape, scanner: JsonScanner): boolean {
  return listAnswerTexts(shape, scanner).some(
    ({ node }) => scanner.end(node) - scanner.start(node) > 2,
  );
}

// The text of an event, and what else is different in each.
function listVarying(scanner: JsonScanner, text: number, dataStart: number): Varying[] {
  const varying: Varying[] = [];
  for (let node = 0; node < scanner.count; node++) {
    const kind = node === text ? "text" : findVarying(scanner, node);
    if (kind === undefined) continue;
    // Strings without their quotation marks.
    const inset = kind === "count" ? 0 : 1;
    const start = dataStart + scanner.start(node) + inset;
    varying.push({ start, end: dataStart + scanner.end(node) - inset, kind });
  }
  return varying;
}

function findVarying(scanner: JsonScanner, node: number): Varying["kind"] | undefined {
  switch (scanner.kind(node)) {
    case JsonKind.Number:
      return scanner.name(node) === COUNT ? "count" : undefined;
    case JsonKind.String:
      return scanner.name(node) === FILLER ? "filler" : undefined;
    default:
      return undefined;
  }
}
