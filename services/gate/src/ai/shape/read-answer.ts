// Reads answers of models and the events of their streams: texts, the end, errors.
import type { AiShape } from "./ai-shape.ts";
import { JsonKind, type JsonScanner } from "./json-scan.ts";
import { readString } from "./read-request.ts";

/** A text of an answer. */
export interface AnswerText {
  /** Node of the string. */
  readonly node: number;
  /** Texts of one channel belong together over all events of a stream: a choice, or a call of a tool. */
  readonly channel: string;
}

/** The state of a stream after an event. */
export type EventKind =
  /** Content, or what comes before it. */
  | "content"
  /** All that the client needs has arrived; an event that ends the stream may follow. */
  | "finished"
  /** The last event. */
  | "last"
  | "error";

const CHAT_TEXTS = ["content", "refusal", "reasoning", "reasoning_content"];
const MESSAGE_TEXTS = ["text", "thinking", "partial_json"];

/** The texts of an answer, or of an event of a stream. */
export function listAnswerTexts(shape: AiShape, tree: JsonScanner): AnswerText[] {
  const texts: AnswerText[] = [];
  const add = (node: number, channel: string): void => {
    if (node !== -1 && tree.kind(node) === JsonKind.String) texts.push({ node, channel });
  };
  switch (shape) {
    case "chat":
      for (const choice of listEntries(tree, 0, "choices")) addChoice(tree, choice, add);
      return texts;
    case "completions":
      for (const choice of listEntries(tree, 0, "choices"))
        add(tree.find(choice, "text"), readIndex(tree, choice));
      return texts;
    case "messages":
      addMessage(tree, add);
      return texts;
    case "responses":
      addResponse(tree, add);
      return texts;
    case "embeddings":
      return texts;
    default:
      return shape satisfies never;
  }
}

/** The kind of an event with this data, which is no `[DONE]`. */
export function readEventKind(shape: AiShape, tree: JsonScanner): EventKind {
  const type = shape === "messages" || shape === "responses" ? readString(tree, 0, "type") : "";
  const error = tree.find(0, "error");
  const isError = error !== -1 && tree.kind(error) === JsonKind.Object;
  if (type === "error" || (type === "" && isError)) return "error";
  switch (shape) {
    case "chat":
    case "completions": {
      const isOver = (choice: number): boolean => {
        const reason = tree.find(choice, "finish_reason");
        return reason !== -1 && tree.kind(reason) === JsonKind.String;
      };
      return listEntries(tree, 0, "choices").some(isOver) ? "finished" : "content";
    }
    case "messages":
      return type === "message_stop" ? "last" : "content";
    case "responses":
      if (type === "response.failed") return "error";
      return /^response\.(?:completed|incomplete)$/.test(type) ? "last" : "content";
    case "embeddings":
      return "content";
    default:
      return shape satisfies never;
  }
}

/** True for events whose texts continue those of others. */
export function isDelta(shape: AiShape, scanner: JsonScanner): boolean {
  if (shape === "responses") return readString(scanner, 0, "type").endsWith(".delta");
  if (shape === "messages") return readString(scanner, 0, "type") === "content_block_delta";
  return true;
}

/** True for the event with the usage that providers of OpenAI's shape send if they were asked for it. */
export function isUsageEvent(tree: JsonScanner): boolean {
  const choices = tree.find(0, "choices");
  const usage = tree.find(0, "usage");
  if (choices === -1 || usage === -1 || tree.kind(choices) !== JsonKind.Array) return false;
  return tree.firstChild(choices) === -1 && tree.kind(usage) === JsonKind.Object;
}

/** The entries of a member that is an array. */
export function listEntries(tree: JsonScanner, node: number, name: string): number[] {
  const list = tree.find(node, name);
  return list !== -1 && tree.kind(list) === JsonKind.Array ? [...tree.children(list)] : [];
}

type AddText = (node: number, channel: string) => void;

/** The index of a choice or a part, as it is written. */
export function readIndex(tree: JsonScanner, node: number, name = "index"): string {
  const index = tree.find(node, name);
  return index === -1 ? "0" : tree.bytes.toString("latin1", tree.start(index), tree.end(index));
}

function addChoice(tree: JsonScanner, choice: number, add: AddText): void {
  const index = readIndex(tree, choice);
  for (const member of ["delta", "message"]) {
    const message = tree.find(choice, member);
    if (message === -1) continue;
    for (const name of CHAT_TEXTS) add(tree.find(message, name), `${index} ${name}`);
    const called = tree.find(message, "function_call");
    add(tree.find(called, "arguments"), `${index} call`);
    for (const [at, call] of listEntries(tree, message, "tool_calls").entries()) {
      const number = member === "delta" ? readIndex(tree, call) : String(at);
      add(tree.find(tree.find(call, "function"), "arguments"), `${index} call ${number}`);
    }
  }
}

function addMessage(tree: JsonScanner, add: AddText): void {
  const index = readIndex(tree, 0);
  for (const member of ["delta", "content_block"]) {
    const delta = tree.find(0, member);
    for (const name of MESSAGE_TEXTS) add(tree.find(delta, name), `${index} ${name}`);
  }
  for (const [at, block] of listEntries(tree, 0, "content").entries()) {
    for (const name of MESSAGE_TEXTS) add(tree.find(block, name), `${at} ${name}`);
    const input = tree.find(block, "input");
    if (input !== -1) addAll(tree, input, `${at} input`, add);
  }
}

function addResponse(tree: JsonScanner, add: AddText): void {
  if (readString(tree, 0, "type").endsWith(".delta")) {
    const channel = `${readIndex(tree, 0, "output_index")} ${readIndex(tree, 0, "content_index")}`;
    add(tree.find(0, "delta"), channel);
  }
  for (const [at, item] of listEntries(tree, 0, "output").entries()) {
    add(tree.find(item, "arguments"), `${at} call`);
    for (const name of ["content", "summary"]) {
      for (const [part, entry] of listEntries(tree, item, name).entries())
        add(tree.find(entry, "text"), `${at} ${name} ${part}`);
    }
  }
}

function addAll(tree: JsonScanner, node: number, channel: string, add: AddText): void {
  if (tree.kind(node) === JsonKind.String) add(node, channel);
  else for (const child of tree.children(node)) addAll(tree, child, channel, add);
}
