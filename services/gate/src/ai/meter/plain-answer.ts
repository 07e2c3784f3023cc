// Meters an answer that is one JSON document: holds its head until its tokens are known.
import { isUtf8 } from "node:buffer";
import type { ContentFilter, ContentOutput, ResponseDraft } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { answerError, TOKEN_COST_FIELD } from "../../exchange/answers.ts";
import type { GateExchange } from "../../exchange/exchange.ts";
import { type AnswerCoding, decodeAnswer } from "./answer-coding.ts";
import { readEventKind } from "../shape/read-answer.ts";
import { JsonKind, JsonScanner } from "../shape/json-scan.ts";
import { scanInSlices } from "../shape/scan-body.ts";
import type { BodyMemory } from "../body-memory.ts";
import { editBody } from "../shape/edit-body.ts";
import { HELD_CHARACTERS_MAX, MaskedText } from "../pii/mask-text.ts";
import { maskInPieces, maskTree } from "../pii/mask-tree.ts";
import type { CallPii, ModelCall } from "./model-call.ts";

/** Largest answer in bytes, also decoded. */
const ANSWER_BYTES_MAX = 33_554_432;
const CODING_FIELD = /^content-encoding$/i;
const UNREADABLE = "upstream_invalid_response";

/** Options of {@link PlainAnswer}. */
export interface PlainAnswerOptions {
  readonly exchange: GateExchange;
  readonly call: ModelCall;
  readonly draft: ResponseDraft;
  readonly memory: BodyMemory;
  /** Coding of the content, which the head no longer names. */
  readonly coding: AnswerCoding;
  /** Decides about the metered answer: `send` passes it on. Absent: it is passed on. */
  readonly decide?: (content: Buffer, output: ContentOutput, send: () => void) => void;
}

/** Collects and meters one answer. */
export class PlainAnswer implements ContentFilter {
  readonly holdsHead = true;
  readonly #exchange: GateExchange;
  readonly #call: ModelCall;
  readonly #draft: ResponseDraft;
  readonly #memory: BodyMemory;
  readonly #coding: AnswerCoding;
  readonly #decide: PlainAnswerOptions["decide"];
  #pieces: Buffer[] = [];
  #bytes = 0;
  #isOver = false;

  constructor({ exchange, call, draft, memory, coding, decide }: PlainAnswerOptions) {
    this.#exchange = exchange;
    this.#call = call;
    this.#draft = draft;
    this.#memory = memory;
    this.#coding = coding;
    this.#decide = decide;
  }

  onBytes(bytes: Buffer): void {
    if (this.#isOver) return;
    if (this.#bytes + bytes.length > ANSWER_BYTES_MAX) {
      this.#refuse(`The upstream's answer is larger than ${ANSWER_BYTES_MAX} bytes.`);
      return;
    }
    if (!this.#memory.claim(bytes.length)) {
      this.#refuse("Too many answers of models are held at the same time.", "overloaded");
      return;
    }
    this.#bytes += bytes.length;
    this.#pieces.push(Buffer.from(bytes));
  }

  onEnd(output: ContentOutput): void {
    if (this.#isOver) return;
    const body = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    void this.#finish(body, output).catch((error: unknown) => output.fail(error));
  }

  onAbort(): void {
    if (this.#isOver) return;
    this.#call.settle("answered");
    this.#close();
  }

  async #finish(body: Buffer, output: ContentOutput): Promise<void> {
    const coding = this.#coding;
    const decoded = coding === "unknown" ? body : decodeAnswer(body, coding, ANSWER_BYTES_MAX);
    const plain = decoded instanceof Promise ? await decoded : decoded;
    if (this.#isOver) return;
    if (plain === undefined) {
      this.#refuse("The upstream's answer is damaged, or too large when it is decoded.");
      return;
    }
    const scanner = new JsonScanner();
    const scanned = coding === "unknown" ? false : scanInSlices(scanner, plain);
    const isRead = typeof scanned === "boolean" ? scanned : await scanned;
    if (this.#isOver) return;
    this.#call.settle(isRead ? this.#read(scanner) : this.#judgeUnread(plain));
    const { pii } = this.#call;
    if (isRead && this.#draft.status === 200) await this.#collect(scanner);
    if (this.#isOver) return;
    if (pii !== undefined) {
      const masked = isRead ? await maskAnswer(scanner, pii) : await maskUnread(plain, coding, pii);
      if (this.#isOver) return;
      if (masked === undefined) this.#refuse("The upstream's answer cannot be read.");
      else this.#pass(masked, output);
      return;
    }
    this.#pass(plain, output);
  }

  // Stored answers have placeholders instead of the values of this request.
  async #collect(scanner: JsonScanner): Promise<void> {
    const { collector, pii } = this.#call;
    if (collector === undefined) return;
    if (pii === undefined) {
      collector.readDocument(scanner);
      return;
    }
    const { replaced } = pii.placeholders;
    const masked = new JsonScanner();
    const edits = await maskTree(scanner, { ...pii, restores: false });
    pii.placeholders.replaced = replaced;
    if (await scanInSlices(masked, editBody(scanner.bytes, edits))) collector.readDocument(masked);
  }

  #pass(content: Buffer, output: ContentOutput): void {
    const send = (): void => this.#send(content, output);
    if (this.#decide === undefined) send();
    else this.#decide(content, output, send);
  }

  #send(content: Buffer, output: ContentOutput): void {
    // Compression, which comes later, has announced its coding; only then the length is unknown.
    const isCompressed = this.#draft.headers.some(([name]) => CODING_FIELD.test(name));
    if (this.#call.pii !== undefined && !isCompressed) this.#draft.contentLength = content.length;
    this.#draft.headers.push([TOKEN_COST_FIELD, this.#call.costText]);
    this.#close();
    if (content.length > 0) output.write(content);
    output.end();
  }

  // A 200 with an error is none that a provider bills.
  #read(scanner: JsonScanner): "answered" | "refused" {
    this.#call.readAnswer(scanner);
    const { shape } = this.#call.request;
    const isObject = scanner.kind(0) === JsonKind.Object;
    const isError = isObject && readEventKind(shape, scanner) === "error";
    return this.#isSuccess && !isError ? "answered" : "refused";
  }

  #judgeUnread(body: Buffer): "answered" | "refused" {
    if (!this.#isSuccess) return "refused";
    this.#call.noteUnread(body);
    return "answered";
  }

  get #isSuccess(): boolean {
    return this.#draft.status >= 200 && this.#draft.status < 300;
  }

  #refuse(detail: string, code: "overloaded" | typeof UNREADABLE = UNREADABLE): void {
    this.#call.settle(this.#isSuccess ? "answered" : "refused");
    this.#close();
    answerError(this.#exchange, new PlatformError(code, detail));
  }

  #close(): void {
    this.#isOver = true;
    this.#pieces = [];
    this.#memory.release(this.#bytes);
    this.#bytes = 0;
  }
}

async function maskAnswer(tree: JsonScanner, pii: CallPii): Promise<Buffer> {
  return editBody(tree.bytes, await maskTree(tree, { ...pii, restores: true }));
}

// An answer that is no JSON: text is searched as a whole, anything else does not leave.
async function maskUnread(
  content: Buffer,
  coding: AnswerCoding,
  pii: CallPii,
): Promise<Buffer | undefined> {
  if (coding === "unknown" || !isUtf8(content)) return undefined;
  const stream = new MaskedText({ ...pii, encode: undefined, heldMax: HELD_CHARACTERS_MAX });
  return Buffer.from(await maskInPieces(content.toString("utf8"), stream));
}
