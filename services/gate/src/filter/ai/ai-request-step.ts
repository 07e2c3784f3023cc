// The step of AI routes that reads requests to models; its filter of the answers is `ai-answer-step.ts`.
import { Known, Method, type RequestEnd } from "@platform/http1";
import { PlatformError } from "@platform/kernel/errors";
import { RE2JS } from "re2js";
import type { AiParts } from "../../ai/ai-parts.ts";
import { type CallPii, ModelCall, type ModelCallOptions } from "../../ai/meter/model-call.ts";
import type { PiiSearch } from "../../ai/pii/entity.ts";
import { maskTree } from "../../ai/pii/mask-tree.ts";
import { Placeholders } from "../../ai/pii/placeholders.ts";
import { ModelRoute } from "../../ai/route/model-route.ts";
import { type AiKind, findAiKind } from "../../ai/shape/ai-shape.ts";
import { type BodyEdit, editBody, requestUsage, setModel } from "../../ai/shape/edit-body.ts";
import { describeJsonFault, JsonScanner } from "../../ai/shape/json-scan.ts";
import { type AiRequest, AiRequestFault, readAiRequest } from "../../ai/shape/read-request.ts";
import { scanInSlices } from "../../ai/shape/scan-body.ts";
import { NO_RISK, RISK_FIELD } from "../../exchange/answers.ts";
import type { CompiledRoute, GateExchange, Step } from "../../exchange/exchange.ts";
import { readPaths } from "../../exchange/request-path.ts";
import { decodeContent } from "../../recording/body-content.ts";
import type {
  AiSpec,
  ConfinedSpec,
  MetricBlock,
  PiiSpec,
  RouteSpec,
} from "../../shared-state/index.ts";
import type { StepParts } from "../step-parts.ts";
import { dropFields } from "./drop-fields.ts";
import { PromptJudge } from "./judge-prompt.ts";

/** Reads the requests of an AI route. */
export function createAiRequestStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { ai } = spec.steps;
  return ai && new AiRequestStep(ai, spec.confined, parts);
}

/** Codes of failures after which the provider has done nothing for the request. */
const UNSERVED: ReadonlySet<string> = new Set([
  "circuit_open",
  "overloaded",
  "queue_timeout",
  "unavailable",
  "upstream_unreachable",
]);

class AiRequestStep implements Step {
  readonly #spec: AiSpec;
  readonly #parts: AiParts;
  readonly #block: MetricBlock;
  readonly #search: PiiSearch | undefined;
  readonly #judge: PromptJudge | undefined;

  constructor(spec: AiSpec, confined: ConfinedSpec | undefined, parts: StepParts) {
    this.#spec = spec;
    this.#parts = parts.ai;
    this.#block = parts.block;
    this.#judge = spec.guard && new PromptJudge(spec.guard, confined, parts);
    this.#search = spec.pii && compileSearch(spec.pii);
  }

  run(exchange: GateExchange, route: CompiledRoute): boolean | Promise<boolean> {
    const { head } = exchange;
    const kind = findAiKind(readPaths(exchange)[0] ?? "");
    // Lists of models, stored answers and WebSockets pass as they are.
    if (kind === undefined || head.methodId !== Method.POST || head.upgrade) {
      this.#checkUnknown(exchange);
      if (head.upgrade || hasBody(exchange)) this.#block.addCounter("modelRequestsUnread", 1);
      if (this.#judge !== undefined) exchange.userData.responseFields.add(RISK_FIELD, NO_RISK);
      return true;
    }
    const body = readWholeBody(exchange, route);
    return body instanceof Promise
      ? body.then((whole) => this.#read(exchange, route, kind, whole))
      : this.#read(exchange, route, kind, body);
  }

  finish(exchange: GateExchange, end: RequestEnd): void {
    const { ai, code } = exchange.userData;
    if (!(ai instanceof ModelCall)) return;
    const isServed = end.attempts > 0 && !UNSERVED.has(code);
    ai.settle(isServed ? "answered" : "refused");
    this.#parts.memory.release(ai.heldBytes);
  }

  async #read(
    exchange: GateExchange,
    route: CompiledRoute,
    kind: AiKind,
    sent: Buffer,
  ): Promise<boolean> {
    const { bodyBytesMax } = route.spec;
    const { sequence } = exchange;
    const body = await this.#decode(exchange, sent, bodyBytesMax);
    const scanner = new JsonScanner();
    const scanned = scanInSlices(scanner, body);
    if (!(typeof scanned === "boolean" ? scanned : await scanned)) {
      const detail = describeJsonFault(scanner.fault!);
      throw new PlatformError("bad_request", `The request body cannot be read: ${detail}.`);
    }
    if (exchange.sequence !== sequence || exchange.aborted) return false;
    const request = readOrRefuse(kind, scanner);
    const pii = this.#openPii();
    const createCall = (model: string, earlier?: ModelCall): ModelCall =>
      this.#createCall(route.label, {
        request: { ...request, model },
        tree: scanner,
        pii,
        earlier,
      });
    const { routing } = this.#spec;
    const call = createCall(routing?.primary.model ?? request.model);
    exchange.userData.ai = call;
    await this.#guard(exchange, call, scanner);
    const masked = pii === undefined ? [] : await maskRequest(scanner, pii);
    if (exchange.sequence !== sequence || exchange.aborted) return false;
    if (this.#spec.cache !== undefined)
      call.prompt = await rescan(kind, { request, body, tree: scanner, masked });
    if (exchange.sequence !== sequence || exchange.aborted) return false;
    const edits = call.hidesUsage ? [...masked, requestUsage(scanner)] : masked;
    const composeBody = (model: string): Buffer =>
      editBody(body, [...edits, setModel(scanner, model)]);
    const edited = routing === undefined ? editBody(body, edits) : composeBody(call.request.model);
    // The client's body is kept for the fallback.
    this.#claim(call, edited.length + (routing === undefined ? 0 : body.length));
    if (edited !== sent) exchange.replaceBody(edited);
    if (routing !== undefined) {
      call.compared = this.#parts.prices.find(routing.fallback.model);
      exchange.userData.models = new ModelRoute({
        spec: routing,
        exchange,
        memory: this.#parts.memory,
        primary: call,
        createFallback: (primary) => createCall(routing.fallback.model, primary),
        composeBody,
      });
    }
    return true;
  }

  #createCall(
    label: string,
    options: Pick<ModelCallOptions, "request" | "tree" | "pii"> & {
      earlier: ModelCall | undefined;
    },
  ): ModelCall {
    const { request, earlier, ...others } = options;
    return new ModelCall({
      ...others,
      request,
      hidesUsage: addsUsage(request),
      price: this.#parts.prices.find(request.model),
      ...(earlier === undefined ? {} : { earlier }),
      onSettled: (call, settled) => this.#parts.figures.add(label, call, settled),
    });
  }

  #claim(call: ModelCall, bytes: number): void {
    if (!this.#parts.memory.claim(bytes))
      throw new PlatformError("overloaded", "Too many requests to models are held at once.", {
        headers: { "Retry-After": "1" },
      });
    call.heldBytes += bytes;
  }

  // The matched text is in no log, and not in the answer either.
  async #guard(exchange: GateExchange, call: ModelCall, scanner: JsonScanner): Promise<void> {
    if (this.#judge === undefined) return;
    const { sequence } = exchange;
    const risk = await this.#judge.judge(call.request, scanner);
    if (exchange.sequence !== sequence || exchange.aborted) return;
    call.risk = risk;
    exchange.userData.responseFields.add(RISK_FIELD, risk.toFixed(2));
    const { threshold, blocks } = this.#judge.spec;
    if (risk < threshold) return;
    this.#block.addCounter(blocks ? "promptsBlocked" : "promptsReported", 1);
    if (blocks)
      throw new PlatformError("prompt_blocked", "The prompt was judged to be a prompt injection.");
  }

  #openPii(): CallPii | undefined {
    const { pii } = this.#spec;
    if (pii === undefined || this.#search === undefined) return undefined;
    return { search: this.#search, placeholders: new Placeholders(pii.isReversible) };
  }

  // A body that the gateway cannot read may have anything in it.
  #checkUnknown(exchange: GateExchange): void {
    const { passesUnknown, pii, guard } = this.#spec;
    if (!hasBody(exchange) || exchange.head.upgrade || passesUnknown) return;
    if (pii === undefined && guard === undefined) return;
    const detail =
      "The gateway cannot read this request, and the route guards or redacts all of them.";
    throw new PlatformError("unsupported_ai_request", detail);
  }

  async #decode(exchange: GateExchange, sent: Buffer, bytesMax: number): Promise<Buffer> {
    const coding = exchange.head.fields.find("content-encoding");
    if (coding === undefined) return sent;
    const fields: [string, string][] = [["content-encoding", coding]];
    const body = await decodeContent({ fields, content: sent }, bytesMax);
    if (body === undefined) {
      const detail = `The coding of the request body is unknown, or it is damaged or larger than ${bytesMax} bytes.`;
      throw new PlatformError("bad_request", detail);
    }
    dropFields(exchange, ["content-encoding", "content-md5", "content-digest", "digest"]);
    return body;
  }
}

function hasBody({ head }: GateExchange): boolean {
  return head.contentLength > 0 || head.fields.has(Known.TransferEncoding);
}

function compileSearch({ kinds, patterns }: PiiSpec): PiiSearch {
  return {
    kinds: new Set(kinds),
    patterns: patterns.map(([name, pattern]) => ({ name, pattern: RE2JS.compile(pattern) })),
  };
}

async function maskRequest(tree: JsonScanner, pii: CallPii): Promise<BodyEdit[]> {
  const { search, placeholders } = pii;
  placeholders.reserve(tree.bytes.toString("latin1"));
  const edits = await maskTree(tree, { search, placeholders, restores: false });
  placeholders.seal();
  return edits;
}

/** True if the usage is to be asked for: providers of OpenAI's shape report it in streams only then. */
function addsUsage({ shape, isStream, wantsUsage }: AiRequest): boolean {
  return (shape === "chat" || shape === "completions") && isStream && !wantsUsage;
}

function readOrRefuse(kind: AiKind, scanner: JsonScanner): AiRequest {
  try {
    return readAiRequest(kind, scanner);
  } catch (error) {
    if (!(error instanceof AiRequestFault)) throw error;
    const { member, message } = error;
    const name = member === "" ? "The request body" : `\`${member}\``;
    throw new PlatformError("validation_failed", `${name} is invalid: ${message}.`, {
      fields: { param: member },
    });
  }
}

function readWholeBody(exchange: GateExchange, { spec }: CompiledRoute): Buffer | Promise<Buffer> {
  const { bodyBytesMax, timeouts } = spec;
  const tooLarge = (): PlatformError =>
    new PlatformError(
      "payload_too_large",
      `The request body is larger than ${bodyBytesMax} bytes.`,
    );
  if (exchange.head.fields.has(Known.ContentLength) && exchange.head.contentLength > bodyBytesMax)
    throw tooLarge();
  exchange.bodyBytesMax = bodyBytesMax;
  exchange.bodyIdleMs = timeouts.idleMs;
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  let now: Buffer | undefined;
  exchange.readBody(bodyBytesMax, (_exchange, outcome, body) => {
    if (outcome === "complete") {
      now = body;
      resolve(body);
    } else if (outcome === "too-large") reject(tooLarge());
    // A request whose client has disconnected ends here.
  });
  return now ?? promise;
}

/** A request whose personal data has been replaced, as it reads now. */
async function rescan(
  kind: AiKind,
  options: { request: AiRequest; body: Buffer; tree: JsonScanner; masked: readonly BodyEdit[] },
): Promise<NonNullable<ModelCall["prompt"]>> {
  const { request, body, tree, masked } = options;
  if (masked.length === 0) return { request, tree };
  const scanner = new JsonScanner();
  await scanInSlices(scanner, editBody(body, masked));
  return { request: readAiRequest(kind, scanner), tree: scanner };
}
