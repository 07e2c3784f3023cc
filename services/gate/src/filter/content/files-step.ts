// The step that answers with the files of a folder.
import { openStaticFile, readPieces, type StaticFileAnswer } from "@platform/kernel/content";
import { Known } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { answerWith, readMethod } from "../../exchange/answers.ts";
import type { GateExchange, Step } from "../../exchange/exchange.ts";
import { readPaths } from "../../exchange/request-path.ts";
import type { FilesSpec, HeaderRules, RouteSpec } from "../../shared-state/index.ts";
import { type Compression, CompressionRule } from "./compression-rule.ts";
import { compressPieces } from "./compressor.ts";
import type { StepParts } from "../step-parts.ts";

/** Answers with files. */
export function createFilesStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { files } = spec.steps;
  return files === undefined ? undefined : new FilesStep(files, spec, parts);
}

type Fields = [name: string, value: string][];

class FilesStep implements Step {
  readonly #files: FilesSpec;
  readonly #roots: readonly string[] | undefined;
  readonly #prefixLength: number;
  readonly #rules: HeaderRules | undefined;
  readonly #removed: ReadonlySet<string>;
  readonly #compression: CompressionRule | undefined;
  readonly #onError: StepParts["onGuardError"];

  constructor(files: FilesSpec, { prefix, headers, steps, confined }: RouteSpec, parts: StepParts) {
    this.#files = files;
    this.#roots = confined?.roots;
    this.#prefixLength = prefix.replace(/\/+$/, "").length;
    this.#rules = headers;
    this.#removed = new Set(headers?.removeResponse.map((name) => name.toLowerCase()));
    this.#compression =
      steps.compression === undefined ? undefined : new CompressionRule(steps.compression, parts);
    this.#onError = parts.onGuardError;
  }

  async run(exchange: GateExchange): Promise<boolean> {
    const { sequence } = exchange;
    const method = readMethod(exchange);
    if (method !== "GET" && method !== "HEAD") {
      const headers = { Allow: "GET, HEAD" };
      throw new PlatformError("method_not_allowed", "Files accept GET and HEAD.", { headers });
    }
    const [path = "/"] = readPaths(exchange);
    const found = await this.#find(exchange, method, path);
    const isOver = exchange.sequence !== sequence || exchange.aborted;
    if (found === "folder") {
      if (!isOver) redirectToFolder(exchange, path);
      return false;
    }
    let compression: Compression | undefined;
    try {
      if (isOver) return false;
      compression = this.#begin(exchange, found);
      if (found.content !== undefined) await this.#send(exchange, found.content, compression);
    } finally {
      compression?.release();
      await found.content?.handle.close();
    }
    return false;
  }

  async #find(
    exchange: GateExchange,
    method: string,
    path: string,
  ): Promise<StaticFileAnswer | "folder"> {
    const { root, index, fallback, cacheControl, isPrecompressed } = this.#files;
    const { fields } = exchange.head;
    // The head is valid until the request has ended: its fields are read before the first wait.
    const values = new Map(CONDITION_FIELDS.map((name) => [name, fields.find(name)]));
    values.set("accept-encoding", fields.get(Known.AcceptEncoding));
    const below = decode(path.slice(this.#prefixLength));
    if (below === "") return "folder";
    const options = {
      method,
      read: (name: string) => values.get(name),
      index,
      cacheControl,
      isPrecompressed,
      ...(this.#roots === undefined ? {} : { within: this.#roots }),
    };
    let found =
      below === undefined ? undefined : await openStaticFile(root, below.slice(1), options);
    if (found === undefined && fallback !== undefined) {
      found = await openStaticFile(root, fallback, options);
      if (found === "folder") found = undefined;
    }
    if (found === undefined) throw new PlatformError("not_found", "No such file.");
    return found;
  }

  #begin(
    exchange: GateExchange,
    { status, headers, content }: StaticFileAnswer,
  ): Compression | undefined {
    const own = [...headers, ["X-Content-Type-Options", "nosniff"] as const];
    const kept = own.filter(([name]) => !this.#removed.has(name.toLowerCase()));
    const fields = [...kept, ...(this.#rules?.addResponse ?? [])].map(
      ([name, value]): Fields[number] => [name, value],
    );
    if (content === undefined) {
      answerWith(exchange, { status, headers: fields });
      return undefined;
    }
    fields.push(...exchange.userData.responseFields.list());
    const { length: contentLength } = content;
    const hasContent = readMethod(exchange) !== "HEAD";
    const draft = { status, reason: "", headers: fields, contentLength, hasContent };
    const compression = this.#compression?.apply(exchange.head.fields, draft);
    exchange.startResponse({
      status,
      headers: draft.headers,
      ...(draft.contentLength < 0 ? {} : { contentLength }),
    });
    return compression;
  }

  async #send(
    exchange: GateExchange,
    content: NonNullable<StaticFileAnswer["content"]>,
    compression: Compression | undefined,
  ): Promise<void> {
    if (readMethod(exchange) === "HEAD") {
      exchange.end();
      return;
    }
    const read = readPieces(content);
    const pieces =
      compression === undefined ? read : compressPieces(read, compression.coding, content.length);
    try {
      for await (const piece of pieces) {
        if (exchange.aborted) return;
        if (!exchange.write(piece)) await waitForDrain(exchange);
      }
      if (!exchange.aborted) exchange.end();
    } catch (error) {
      this.#onError("a file could not be sent", this.#files.root, error);
      if (!exchange.aborted) exchange.destroy();
    }
  }
}

const CONDITION_FIELDS = [
  "if-match",
  "if-none-match",
  "if-modified-since",
  "if-unmodified-since",
  "if-range",
  "range",
];

// A path is in normal form: it contains no encoded slash and does not climb.
function decode(path: string): string | undefined {
  try {
    return decodeURIComponent(Buffer.from(path, "latin1").toString("utf8"));
  } catch {
    return undefined;
  }
}

function redirectToFolder(exchange: GateExchange, path: string): void {
  const { head } = exchange;
  const query = head.bytes.toString("latin1", head.pathEnd, head.targetEnd);
  answerWith(exchange, { status: 301, headers: [["Location", `${path}/${query}`]] });
}

function waitForDrain(exchange: GateExchange): Promise<void> {
  return new Promise((resolve) => {
    const proceed = (): void => {
      exchange.onDrain = null;
      exchange.onAborted = null;
      resolve();
    };
    exchange.onDrain = proceed;
    exchange.onAborted = proceed;
  });
}
