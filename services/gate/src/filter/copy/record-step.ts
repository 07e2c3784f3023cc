// The recording step: requests as the upstream receives them, and its responses, for `platform-gate replay`.
import {
  addRequestTap,
  type ContentFilter,
  type ContentOutput,
  type FieldBlock,
  type HeadWriter,
  type RequestEnd,
  type RequestTap,
  type ResponseDraft,
  type ResponseHead,
} from "@platform/http1";
import type { GateExchange, OriginalRequest, Recording, Step } from "../../exchange/exchange.ts";
import { BodyCopy } from "../../recording/body-copy.ts";
import type { RecordedFields } from "../../recording/recorded-exchange.ts";
import type { CopiedExchange, RecordingLog } from "../../recording/recording-log.ts";
import { Redactor } from "../../recording/redactor.ts";
import type { RecordSpec, RouteSpec } from "../../shared-state/index.ts";
import { readSentHead, type SentHead } from "../content/sent-head.ts";
import type { StepParts } from "../step-parts.ts";

/** Framing and connection of one hop. */
const HOP_FIELDS: ReadonlySet<string> = new Set([
  "connection",
  "content-length",
  "keep-alive",
  "trailer",
  "transfer-encoding",
]);

/** Records requests of a route. It must come after all steps that add to the head, which it copies. */
export function createRecordStep(spec: RouteSpec, parts: StepParts): Step | undefined {
  const { record, ai } = spec.steps;
  const omitsBodies = ai !== undefined && !ai.recordsPrompts;
  return record && new RecordStep(record, parts.recordings, omitsBodies);
}

class RecordStep implements Step {
  readonly #spec: RecordSpec;
  readonly #redactor: Redactor;
  readonly #log: RecordingLog;
  /** Bodies may have prompts in them. */
  readonly #omitsBodies: boolean;

  constructor(spec: RecordSpec, log: RecordingLog, omitsBodies: boolean) {
    this.#spec = spec;
    this.#omitsBodies = omitsBodies;
    this.#redactor = new Redactor(spec.redactedNames);
    this.#log = log;
  }

  run(exchange: GateExchange): boolean {
    // An upgrade has no end that a replay could compare.
    if (exchange.head.upgrade || Math.random() * 100 >= this.#spec.percent) return true;
    const copy = new ExchangeCopy(this.#spec.bodyBytesMax, this.#redactor, {
      log: this.#log,
      omission: this.#omitsBodies ? "prompts" : "too-large",
    });
    exchange.userData.recording = copy;
    addRequestTap(exchange, copy);
    return true;
  }

  onRequestHead(exchange: GateExchange, writer: HeadWriter): void {
    exchange.userData.recording?.takeHead(writer.view());
  }

  filterResponse(
    exchange: GateExchange,
    draft: ResponseDraft,
    head: ResponseHead,
  ): readonly ContentFilter[] {
    const { recording } = exchange.userData;
    return recording === null ? [] : [recording.takeResponse(head, draft.hasContent)];
  }

  finish(exchange: GateExchange, end: RequestEnd): void {
    exchange.userData.recording?.finish(exchange, end);
  }
}

/** The copy of one exchange: written when both bodies are complete. */
class ExchangeCopy implements Recording, RequestTap, ContentFilter {
  readonly #bodyBytesMax: number;
  readonly #redactor: Redactor;
  readonly #log: RecordingLog;
  readonly #omission: BodyCopy["omission"];
  readonly #requestBody: BodyCopy;
  #responseBody: BodyCopy | undefined;
  #originalBody: BodyCopy | undefined;
  #request: SentHead | undefined;
  #response: { status: number; fields: RecordedFields } | undefined;
  #headBytes = 0;
  #isRequestComplete = false;
  #isResponseComplete = false;
  /** The budget is exhausted: nothing is kept. */
  #isDropped = false;

  constructor(
    bodyBytesMax: number,
    redactor: Redactor,
    { log, omission }: { log: RecordingLog; omission: BodyCopy["omission"] },
  ) {
    this.#bodyBytesMax = bodyBytesMax;
    this.#redactor = redactor;
    this.#log = log;
    this.#omission = omission;
    this.#requestBody = new BodyCopy(bodyBytesMax, false, omission);
  }

  takeHead(bytes: Buffer): void {
    // The response belongs to the last attempt.
    if (this.#claimHead(bytes.length)) this.#request = readSentHead(bytes);
  }

  takeResponse(head: ResponseHead, hasContent: boolean): ContentFilter {
    const { fields } = head;
    if (this.#claimHead(fields.end - fields.start)) {
      const isCoded = fields.find("content-encoding") !== undefined;
      this.#response = { status: head.status, fields: listFields(fields) };
      this.#responseBody = new BodyCopy(this.#bodyBytesMax, !isCoded, this.#omission);
    }
    this.#isResponseComplete = !hasContent;
    return this;
  }

  onBytes(bytes: Buffer, output?: ContentOutput): void {
    const body = output === undefined ? this.#requestBody : this.#responseBody;
    if (!this.#isDropped && body?.push(bytes, this.#log.budget) === false) this.#drop();
    output?.write(bytes);
  }

  onEnd(end: ContentOutput | "complete" | "aborted"): void {
    if (typeof end === "string") this.#isRequestComplete = end === "complete";
    else {
      this.#isResponseComplete = true;
      end.end();
    }
  }

  finish(exchange: GateExchange, end: RequestEnd): void {
    const request = this.#request;
    const response = this.#response;
    const responseBody = this.#responseBody;
    const original = this.#copyOriginal(exchange.userData.guests?.original);
    const isWhole = this.#isRequestComplete && this.#isResponseComplete && !this.#isDropped;
    if (!isWhole || request === undefined || response === undefined || !responseBody) {
      this.#release();
      return;
    }
    const { method, target, fields } = request;
    const copied = {
      line: describeLine(exchange, end),
      method,
      target,
      status: response.status,
      request: { fields, body: this.#requestBody },
      original,
      response: { fields: response.fields, body: responseBody },
    };
    this.#log.write(copied, this.#redactor, {
      bodyBytesMax: this.#bodyBytesMax,
      release: () => this.#release(),
    });
  }

  // Exchanges whose request was not changed by a guest have none.
  #copyOriginal(original: OriginalRequest | undefined): CopiedExchange["original"] {
    if (original === undefined) return undefined;
    const { method, target, fields, body } = original;
    const kept = fields.filter(([name]) => !HOP_FIELDS.has(name.toLowerCase()));
    const headBytes = kept.reduce((sum, [name, value]) => sum + name.length + value.length, 0);
    if (!this.#claimHead(target.length + headBytes)) return undefined;
    if (body !== undefined) {
      this.#originalBody = new BodyCopy(this.#bodyBytesMax, false);
      if (!this.#originalBody.push(body, this.#log.budget)) this.#drop();
    }
    return { method, target, fields: kept, body: this.#originalBody };
  }

  #claimHead(bytes: number): boolean {
    if (this.#isDropped) return false;
    if (!this.#log.budget.claim(bytes)) {
      this.#drop();
      return false;
    }
    this.#headBytes += bytes;
    return true;
  }

  #drop(): void {
    this.#isDropped = true;
    this.#log.skipped++;
    this.#release();
  }

  #release(): void {
    const { budget } = this.#log;
    budget.release(this.#headBytes);
    this.#headBytes = 0;
    this.#requestBody.drop(budget);
    this.#responseBody?.drop(budget);
    this.#originalBody?.drop(budget);
  }
}

function listFields(fields: FieldBlock): RecordedFields {
  const list: RecordedFields = [];
  for (let index = 0; index < fields.count; index++) {
    const name = fields.name(index);
    if (!HOP_FIELDS.has(name.toLowerCase())) list.push([name, fields.value(index)]);
  }
  return list;
}

/** The fields of the access log. */
function describeLine(
  { userData: state }: GateExchange,
  end: RequestEnd,
): Record<string, string | number | null> {
  return {
    timestamp: new Date(state.startedAtEpochMs).toISOString(),
    method: state.method,
    path: state.path,
    status: end.status,
    latency_ms: Math.round(end.totalMs),
    client_ip: state.forwarding.clientAddress,
    upstream: state.target?.url ?? "",
    code: state.code,
    route: state.route?.label ?? "",
    request_id: state.ids.requestId,
    trace_id: state.ids.traceId,
    attempts: end.attempts,
    upstream_ms: Math.round(end.upstreamMs * 10) / 10,
  };
}
