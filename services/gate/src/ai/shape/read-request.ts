// Reads a request to a model: its model, bounds and texts, as nodes of the scanned body.
import type { TextRole } from "../../shared-state/index.ts";
import type { AiKind, AiShape } from "./ai-shape.ts";
import { JsonKind, type JsonScanner } from "./json-scan.ts";

/** A text of a request. */
interface RequestText {
  readonly role: TextRole;
  /** Node of the string. */
  readonly node: number;
  /** A document or the result of a tool: nobody who takes part in the conversation has said it. */
  readonly isData: boolean;
}

/** A request to a model. */
export interface AiRequest {
  readonly shape: AiShape;
  readonly isCount: boolean;
  /** "" if the request names none, as some providers have it in the path. */
  readonly model: string;
  readonly isStream: boolean;
  /** Bound of the answer that the client has set. */
  readonly outputTokensMax: number | undefined;
  /** Number of answers. */
  readonly choices: number;
  /** Number of images, and of files of other kinds. */
  readonly images: number;
  /** Sizes in bytes of files that the request contains; the others are at the provider, or at an address. */
  readonly fileBytes: readonly number[];
  readonly texts: readonly RequestText[];
  /** Bytes of all texts as sent, with those of tools and schemas. */
  readonly textBytes: number;
  /** The client wants the usage at the end of a stream. */
  readonly wantsUsage: boolean;
}

/** A member that has no usable value. */
export class AiRequestFault extends Error {
  /** Name of the member; "" for the whole. */
  readonly member: string;

  constructor(member: string, message: string) {
    super(message);
    this.name = "AiRequestFault";
    this.member = member;
  }
}

const TOKENS_MAX = 1_000_000_000;
const CHOICES_MAX = 128;
const OUTPUT_BOUNDS: Readonly<Record<AiShape, readonly string[]>> = {
  chat: ["max_completion_tokens", "max_tokens"],
  completions: ["max_tokens"],
  embeddings: [],
  responses: ["max_output_tokens"],
  messages: ["max_tokens"],
};
/** Members with instructions and descriptions that are input of the model, too. */
const MORE_INPUT: Readonly<Record<AiShape, readonly string[]>> = {
  chat: ["tools", "functions", "response_format"],
  completions: ["suffix"],
  embeddings: [],
  responses: ["tools", "text"],
  messages: ["tools"],
};
const IMAGE_TYPES: ReadonlySet<string> = new Set([
  "image_url",
  "image",
  "input_image",
  "input_audio",
  "input_file",
  "file",
  "document",
]);

/** Paths of the base64 content in parts of these kinds. */
const FILE_DATA: Readonly<Record<string, readonly string[]>> = {
  file: ["file", "file_data"],
  input_file: ["file_data"],
  document: ["source", "data"],
  input_audio: ["input_audio", "data"],
};

/** Reads a scanned body. Throws {@link AiRequestFault} if a member that matters to the gateway has another type. */
export function readAiRequest(kind: AiKind, tree: JsonScanner): AiRequest {
  if (tree.kind(0) !== JsonKind.Object) throw new AiRequestFault("", "expected a JSON object");
  const { shape, isCount } = kind;
  const reader = new TextReader(tree);
  reader.read(shape);
  for (const name of MORE_INPUT[shape]) reader.addBytes(tree.find(0, name));
  const bounds = OUTPUT_BOUNDS[shape].flatMap((name) => readCount(tree, name, TOKENS_MAX) ?? []);
  const isStream = readFlag(tree, 0, "stream") ?? false;
  return {
    shape,
    isCount,
    model: readModel(tree),
    isStream,
    outputTokensMax: bounds.length === 0 ? undefined : Math.max(...bounds),
    choices: readChoices(tree, shape),
    images: reader.images,
    fileBytes: reader.fileBytes,
    texts: reader.texts,
    textBytes: reader.bytes,
    wantsUsage: isStream && readWantsUsage(tree),
  };
}

class TextReader {
  readonly texts: RequestText[] = [];
  images = 0;
  readonly fileBytes: number[] = [];
  bytes = 0;
  #isData = false;
  readonly #tree: JsonScanner;

  constructor(tree: JsonScanner) {
    this.#tree = tree;
  }

  read(shape: AiShape): void {
    const tree = this.#tree;
    switch (shape) {
      case "chat":
        this.#readMessages("messages");
        return;
      case "messages":
        this.#readContent(tree.find(0, "system"), "system", "system");
        this.#readMessages("messages");
        return;
      case "responses":
        this.#readContent(tree.find(0, "instructions"), "system", "instructions");
        this.#readInput();
        return;
      case "completions":
        this.#readPrompts("prompt");
        return;
      case "embeddings":
        this.#readPrompts("input");
        return;
      default:
        shape satisfies never;
    }
  }

  /** Counts the bytes of all values below a node. */
  addBytes(node: number): void {
    if (node !== -1) this.bytes += this.#tree.end(node) - this.#tree.start(node);
  }

  #readMessages(name: string): void {
    const tree = this.#tree;
    const list = tree.find(0, name);
    if (list === -1) return;
    if (tree.kind(list) !== JsonKind.Array) throw new AiRequestFault(name, "expected an array");
    for (const message of tree.children(list)) this.#readMessage(message, name);
  }

  #readMessage(message: number, name: string): void {
    const tree = this.#tree;
    if (tree.kind(message) !== JsonKind.Object)
      throw new AiRequestFault(name, "expected an array of objects");
    const role = readRole(tree, message);
    this.#readContent(tree.find(message, "content"), role, name);
    const calls = tree.find(message, "tool_calls");
    if (calls !== -1) this.#readAll(calls, "assistant");
    const call = tree.find(message, "function_call");
    if (call !== -1) this.#readAll(call, "assistant");
  }

  // Items of responses are messages, calls of tools and their results.
  #readInput(): void {
    const tree = this.#tree;
    const input = tree.find(0, "input");
    if (input === -1) return;
    if (tree.kind(input) === JsonKind.String) {
      this.#add(input, "user");
      return;
    }
    if (tree.kind(input) !== JsonKind.Array)
      throw new AiRequestFault("input", "expected a string or an array");
    for (const item of tree.children(input)) {
      const content = tree.find(item, "content");
      if (content !== -1) {
        this.#readContent(content, readRole(tree, item), "input");
        continue;
      }
      const output = tree.find(item, "output");
      if (output !== -1) this.#readContent(output, "tool", "input");
      const call = tree.find(item, "arguments");
      if (call !== -1) this.#readAll(call, "assistant");
    }
  }

  #readPrompts(name: string): void {
    const tree = this.#tree;
    const node = tree.find(0, name);
    if (node === -1) return;
    switch (tree.kind(node)) {
      case JsonKind.String:
        this.#add(node, "user");
        return;
      case JsonKind.Array:
        for (const child of tree.children(node)) {
          if (tree.kind(child) === JsonKind.String) this.#add(child, "user");
          else this.addBytes(child);
        }
        return;
      case JsonKind.Null:
        return;
      default:
        throw new AiRequestFault(name, "expected a string or an array");
    }
  }

  #readContent(node: number, role: TextRole, name: string): void {
    if (node === -1) return;
    const tree = this.#tree;
    switch (tree.kind(node)) {
      case JsonKind.String:
        this.#add(node, role);
        return;
      case JsonKind.Array:
        for (const part of tree.children(node)) this.#readPart(part, role, name);
        return;
      case JsonKind.Null:
        return;
      default:
        throw new AiRequestFault(name, "expected content that is a string or an array");
    }
  }

  #readPart(part: number, role: TextRole, name: string): void {
    const tree = this.#tree;
    if (tree.kind(part) === JsonKind.String) {
      this.#add(part, role);
      return;
    }
    const type = tree.find(part, "type");
    const kind = type === -1 || tree.kind(type) !== JsonKind.String ? "" : tree.text(type);
    if (IMAGE_TYPES.has(kind)) {
      this.images++;
      this.#measureFile(part, kind);
      if (kind === "document") this.#inData(() => this.#readDocument(part, role, name));
      return;
    }
    if (kind === "search_result") {
      this.#inData(() => this.#readDocument(part, role, name));
      return;
    }
    if (kind === "tool_result") {
      this.#readContent(tree.find(part, "content"), "tool", name);
      return;
    }
    if (kind === "tool_use") {
      this.#readAll(tree.find(part, "input"), "assistant");
      return;
    }
    const text = ["text", "refusal", "thinking"].map((member) => tree.find(part, member));
    const known = text.filter((node) => node !== -1 && tree.kind(node) === JsonKind.String);
    if (known.length === 0) this.#readAll(part, role);
    for (const node of known) this.#add(node, role);
  }

  #measureFile(part: number, kind: string): void {
    const tree = this.#tree;
    const path = FILE_DATA[kind];
    const isBase64 =
      kind !== "document" || readString(tree, tree.find(part, "source"), "type") === "base64";
    if (path === undefined || !isBase64) return;
    const data = path.reduce((node, name) => (node === -1 ? -1 : tree.find(node, name)), part);
    if (data === -1 || tree.kind(data) !== JsonKind.String) return;
    this.fileBytes.push(Math.floor(((tree.end(data) - tree.start(data) - 2) * 3) / 4));
  }

  // A document that is sent as text, or as blocks of content, or the result of a search; a title and a context go with each.
  #readDocument(part: number, role: TextRole, name: string): void {
    const tree = this.#tree;
    for (const member of ["title", "context"]) {
      const text = tree.find(part, member);
      if (text !== -1 && tree.kind(text) === JsonKind.String) this.#add(text, role);
    }
    const source = tree.find(part, "source");
    const data = tree.find(source, "data");
    const isPlain = data !== -1 && readString(tree, source, "type") === "text";
    if (isPlain && tree.kind(data) === JsonKind.String) this.#add(data, role);
    this.#readContent(tree.find(source, "content"), role, name);
    this.#readContent(tree.find(part, "content"), role, name);
  }

  #inData(read: () => void): void {
    const before = this.#isData;
    this.#isData = true;
    read();
    this.#isData = before;
  }

  // Every string below a node.
  #readAll(node: number, role: TextRole): void {
    if (node === -1) return;
    const tree = this.#tree;
    if (tree.kind(node) === JsonKind.String) this.#add(node, role);
    else for (const child of tree.children(node)) this.#readAll(child, role);
  }

  #add(node: number, role: TextRole): void {
    this.texts.push({ role, node, isData: this.#isData || role === "tool" });
    this.addBytes(node);
  }
}

function readRole(tree: JsonScanner, message: number): TextRole {
  switch (readString(tree, message, "role")) {
    case "system":
    case "developer":
      return "system";
    case "assistant":
      return "assistant";
    case "tool":
    case "function":
      return "tool";
    default:
      return "user";
  }
}

/** The value of a member that is a string; "" without one. */
export function readString(tree: JsonScanner, node: number, name: string): string {
  const member = tree.find(node, name);
  return member !== -1 && tree.kind(member) === JsonKind.String ? tree.text(member) : "";
}

function readModel(tree: JsonScanner): string {
  const node = tree.find(0, "model");
  if (node === -1) return "";
  if (tree.kind(node) !== JsonKind.String) throw new AiRequestFault("model", "expected a string");
  const model = tree.text(node);
  if (model.length > 256) throw new AiRequestFault("model", "expected at most 256 characters");
  return model;
}

function readFlag(tree: JsonScanner, parent: number, name: string): boolean | undefined {
  const node = tree.find(parent, name);
  if (node === -1) return undefined;
  switch (tree.kind(node)) {
    case JsonKind.True:
      return true;
    case JsonKind.False:
      return false;
    case JsonKind.Null:
      return undefined;
    default:
      throw new AiRequestFault(name, "expected true or false");
  }
}

function readCount(tree: JsonScanner, name: string, max: number): number | undefined {
  const node = tree.find(0, name);
  if (node === -1 || tree.kind(node) === JsonKind.Null) return undefined;
  const value = tree.kind(node) === JsonKind.Number ? tree.number(node) : Number.NaN;
  if (Number.isInteger(value) && value >= 0 && value <= max) return value;
  throw new AiRequestFault(name, `expected an integer from 0 to ${max}`);
}

function readChoices(tree: JsonScanner, shape: AiShape): number {
  if (shape !== "chat" && shape !== "completions") return 1;
  const choices = readCount(tree, "n", CHOICES_MAX) ?? 1;
  const generated = shape === "completions" ? (readCount(tree, "best_of", CHOICES_MAX) ?? 1) : 1;
  // Prompts of a list have answers of their own.
  const prompt = shape === "completions" ? tree.find(0, "prompt") : -1;
  let prompts = 1;
  if (prompt !== -1 && tree.kind(prompt) === JsonKind.Array) {
    const entries = [...tree.children(prompt)];
    if (entries.some((entry) => tree.kind(entry) !== JsonKind.Number)) prompts = entries.length;
  }
  return Math.max(1, choices, generated) * Math.max(1, prompts);
}

function readWantsUsage(tree: JsonScanner): boolean {
  const options = tree.find(0, "stream_options");
  if (options === -1 || tree.kind(options) === JsonKind.Null) return false;
  if (tree.kind(options) !== JsonKind.Object)
    throw new AiRequestFault("stream_options", "expected an object");
  return readFlag(tree, options, "include_usage") ?? false;
}
