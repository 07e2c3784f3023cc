// Collects an answer that may be stored: one text that has ended by itself, without calls of tools and the like.
import type { AiShape } from "../shape/ai-shape.ts";
import { JsonKind, type JsonScanner } from "../shape/json-scan.ts";
import { isDelta, listAnswerTexts, listEntries } from "../shape/read-answer.ts";
import { readString } from "../shape/read-request.ts";

/** Longest text that is stored. */
const TEXT_CHARACTERS_MAX = 262_144;
/** Channels of the texts of answers; see `AnswerText`. */
const CHANNELS: Readonly<Record<AiShape, RegExp>> = {
  chat: /^0 content$/,
  completions: /^0$/,
  messages: /^\d+ text$/,
  responses: /^\d+ 0$/,
  embeddings: /^$/,
};
/** Members of messages and choices that a stored answer would lack. */
const UNSTORED = [
  "tool_calls",
  "function_call",
  "refusal",
  "audio",
  "annotations",
  "logprobs",
  "citations",
  "reasoning",
  "reasoning_content",
];

/** The text of one answer. */
export class AnswerCollector {
  readonly #shape: AiShape;
  readonly #onComplete: (text: string) => void;
  #pieces: string[] = [];
  #length = 0;
  #channel: string | undefined;
  #hasEnded = false;
  #isOut = false;

  /** `onComplete` is called at most once, with a text that may be stored. */
  constructor(shape: AiShape, onComplete: (text: string) => void) {
    this.#shape = shape;
    this.#onComplete = onComplete;
  }

  /** Adds a piece of a text of a stream. */
  add(channel: string, text: string): void {
    if (this.#isOut || text === "") return;
    this.#channel ??= channel;
    this.#length += text.length;
    const isOwn = channel === this.#channel && CHANNELS[this.#shape].test(channel);
    if (!isOwn || this.#length > TEXT_CHARACTERS_MAX) this.giveUp();
    else this.#pieces.push(text);
  }

  /** Reads an event of a stream. `readsTexts` is false if its texts are added otherwise. */
  readEvent(tree: JsonScanner, readsTexts: boolean): void {
    if (this.#isOut) return;
    if (this.#hasMore(tree)) {
      this.giveUp();
      return;
    }
    if (readsTexts && isDelta(this.#shape, tree)) {
      for (const { node, channel } of listAnswerTexts(this.#shape, tree))
        this.add(channel, tree.text(node));
    }
    const end = readEnd(this.#shape, tree);
    if (end === undefined) return;
    if (end) this.#hasEnded = true;
    else this.giveUp();
  }

  /** Reads an answer that is one document. */
  readDocument(tree: JsonScanner): void {
    const texts = listAnswerTexts(this.#shape, tree);
    const [text, more] = texts;
    const isWhole = readEnd(this.#shape, tree) === true && !this.#hasMore(tree);
    if (!isWhole || text === undefined || more !== undefined || !isPlainText(this.#shape, tree)) {
      this.giveUp();
      return;
    }
    this.#pieces = [tree.text(text.node)];
    this.#length = this.#pieces[0]!.length;
    this.#hasEnded = this.#length <= TEXT_CHARACTERS_MAX;
    this.complete();
  }

  /** The answer is not stored. */
  giveUp(): void {
    this.#isOut = true;
    this.#pieces = [];
  }

  /** The answer has ended. */
  complete(): void {
    if (this.#isOut || !this.#hasEnded || this.#length === 0) return;
    const text = this.#pieces.join("");
    this.giveUp();
    this.#onComplete(text);
  }

  // Another choice, or a part that is more than text.
  #hasMore(tree: JsonScanner): boolean {
    switch (this.#shape) {
      case "chat":
      case "completions": {
        const choices = listEntries(tree, 0, "choices");
        return choices.length > 1 || choices.some((choice) => hasUnstored(tree, choice));
      }
      case "messages":
        return hasUnstored(tree, tree.find(0, "content_block")) || isOtherBlock(tree);
      case "responses":
        return isOtherItem(tree);
      case "embeddings":
        return true;
      default:
        return this.#shape satisfies never;
    }
  }
}

function hasUnstored(tree: JsonScanner, owner: number): boolean {
  return [owner, tree.find(owner, "delta"), tree.find(owner, "message")].some((part) =>
    UNSTORED.some((name) => !isEmpty(tree, tree.find(part, name))),
  );
}

// Null, "" and [] say that there is nothing.
function isEmpty(tree: JsonScanner, node: number): boolean {
  if (node === -1 || tree.kind(node) === JsonKind.Null) return true;
  return tree.end(node) - tree.start(node) === 2;
}

function isOtherBlock(tree: JsonScanner): boolean {
  const block = tree.find(0, "content_block");
  if (block !== -1) return readString(tree, block, "type") !== "text";
  const delta = readString(tree, tree.find(0, "delta"), "type");
  return delta !== "" && delta !== "text_delta";
}

function isOtherItem(tree: JsonScanner): boolean {
  const type = readString(tree, 0, "type");
  if (type.endsWith(".delta")) return type !== "response.output_text.delta";
  const item = tree.find(0, "item");
  return item !== -1 && !/^(?:message|reasoning)$/.test(readString(tree, item, "type"));
}

/** True if an answer has ended by itself, false if otherwise; undefined while it has not. */
function readEnd(shape: AiShape, tree: JsonScanner): boolean | undefined {
  switch (shape) {
    case "chat":
    case "completions": {
      const [choice = -1] = listEntries(tree, 0, "choices");
      const reason = readString(tree, choice, "finish_reason");
      return reason === "" ? undefined : reason === "stop";
    }
    case "messages": {
      const reason =
        readString(tree, 0, "stop_reason") ||
        readString(tree, tree.find(0, "delta"), "stop_reason");
      return reason === "" ? undefined : reason === "end_turn";
    }
    case "responses": {
      const type = readString(tree, 0, "type");
      const status = readString(tree, type === "" ? 0 : tree.find(0, "response"), "status");
      if (type !== "" && !/^response\.(?:completed|incomplete|failed)$/.test(type))
        return undefined;
      return status === "" ? undefined : status === "completed";
    }
    case "embeddings":
      return undefined;
    default:
      return shape satisfies never;
  }
}

/** True for a document whose parts are one text. */
function isPlainText(shape: AiShape, tree: JsonScanner): boolean {
  if (shape === "messages") {
    const blocks = listEntries(tree, 0, "content");
    return blocks.length === 1 && !hasUnstored(tree, blocks[0]!);
  }
  if (shape !== "responses") return true;
  const items = listEntries(tree, 0, "output").filter(
    (item) => readString(tree, item, "type") !== "reasoning",
  );
  const parts = items.flatMap((item) => listEntries(tree, item, "content"));
  const isMessage = items.length === 1 && readString(tree, items[0]!, "type") === "message";
  return isMessage && parts.length === 1 && !hasUnstored(tree, parts[0]!);
}
