// Meters an answer that is a stream of events, as it passes.
import type { ContentFilter, ContentOutput, ForwardTarget } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { type AiErrorForm, describeErrorEvent } from "../../exchange/ai-error.ts";
import { TOKEN_COST_FIELD } from "../../exchange/answers.ts";
import { formatUsd } from "../price/price-table.ts";
import { EVENT_BYTES_MAX, EventSplitter, type StreamEvent } from "../shape/event-splitter.ts";
import { JsonKind, JsonScanner } from "../shape/json-scan.ts";
import { MaskedEvents } from "../pii/mask-events.ts";
import { EventTemplate } from "../shape/event-template.ts";
import {
  type EventKind,
  isDelta,
  isUsageEvent,
  listAnswerTexts,
  readEventKind,
} from "../shape/read-answer.ts";
import type { ModelCall } from "./model-call.ts";
import type { AiShape } from "../shape/ai-shape.ts";

const DONE = "[DONE]";
const COMMENT = Buffer.from(":\n\n");
/** More than this is not held: it passes, whatever follows. */
const HELD_BYTES_MAX = 1_048_576;

/** Options of {@link StreamAnswer}. */
export interface StreamAnswerOptions {
  readonly call: ModelCall;
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
  readonly #scanner = new JsonScanner();
  readonly #masked: MaskedEvents | undefined;
  readonly #template = new EventTemplate();
  readonly #timer: NodeJS.Timeout;
  #output: ContentOutput | undefined;
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
    this.#splitter.push(bytes, (event) => this.#onEvent(event));
    if (this.#splitter.isTooLong) {
      const detail = `The upstream sent an event of more than ${EVENT_BYTES_MAX} bytes.`;
      this.#fail("upstream_invalid_response", detail);
    } else this.#flush();
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
    clearTimeout(this.#timer);
    this.#isOver = true;
    this.#options.call.settle("answered");
  }

  #onEvent(event: StreamEvent): boolean {
    if (this.#isOver) return false;
    const { raw, data } = event;
    if (data.length === 0) {
      // Comments keep the connection alive; nobody reads them.
      this.#pass(this.#masked === undefined ? raw : COMMENT);
      return true;
    }
    if (this.#template.match(data)) {
      this.#onText(event);
      return true;
    }
    if (data.length === DONE.length && data.toString("latin1") === DONE) {
      this.#passRest();
      this.#passLast(raw);
      return true;
    }
    const scanner = this.#scanner;
    if (scanner.scan(data) && scanner.kind(0) === JsonKind.Object) {
      this.#onAnswer(scanner, event);
      return true;
    }
    this.#options.call.noteUnread(data);
    if (this.#masked === undefined) this.#pass(raw);
    else this.#fail("upstream_invalid_response", "The upstream sent an event that is no JSON.");
    return true;
  }

  // An event like the one before it, with another text.
  #onText(event: StreamEvent): void {
    const { start, end, channel } = this.#template;
    if (end > start) this.#isHeld = false;
    const { call } = this.#options;
    call.noteText(event.data, start, end);
    if (this.#masked === undefined)
      call.collector?.add(channel, event.data.toString("latin1", start, end));
    this.#pass(this.#masked?.rewriteText(event, { channel, start, end }) ?? event.raw);
  }

  // Learns events that have one text and no usage, and in which nothing else was replaced.
  #learn(scanner: JsonScanner, { data }: StreamEvent): void {
    const { shape } = this.#options.call.request;
    const [text, more] = listAnswerTexts(shape, scanner);
    const usage = scanner.find(0, "usage");
    const hasUsage = usage !== -1 && scanner.kind(usage) !== JsonKind.Null;
    const isAlike = text !== undefined && more === undefined && !hasUsage;
    if (isAlike && this.#masked?.hasEdits !== true && isDelta(shape, scanner)) {
      this.#template.learn(
        data,
        scanner.start(text.node) + 1,
        scanner.end(text.node) - 1,
        text.channel,
      );
    } else this.#template.forget();
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
    // A write costs more than the copy of some events.
    if (pieces.length > 1) this.#output!.write(Buffer.concat(pieces));
    else if (pieces.length === 1) this.#output!.write(pieces[0]!);
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
    clearTimeout(this.#timer);
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
