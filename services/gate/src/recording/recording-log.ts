// Writes the recorded exchanges of one worker.
import type { AccessLogWriter } from "../access-log/access-log-writer.ts";
import { escapeNonAscii } from "../access-log/access-line.ts";
import { type BodyCopy, CopyBudget } from "./body-copy.ts";
import { describeBody } from "./body-content.ts";
import type { RecordedBody, RecordedExchange, RecordedFields } from "./recorded-exchange.ts";
import type { Redactor } from "./redactor.ts";

/** Longest line: an exchange beyond it is not recorded. */
export const RECORDED_LINE_BYTES_MAX = 16_777_216;

/** Memory for exchanges that are being recorded, per worker. */
const COPIED_BYTES_MAX = 33_554_432;

/** A message that was copied completely. */
interface CopiedMessage {
  fields: RecordedFields;
  body: BodyCopy;
}

/** The request before a guest changed it. */
interface CopiedOriginal {
  method: string;
  target: string;
  fields: RecordedFields;
  /** Undefined if the guest has not replaced it. */
  body: BodyCopy | undefined;
}

/** An exchange that was copied completely. */
export interface CopiedExchange {
  /** Fields of the access log. */
  line: Readonly<Record<string, string | number | null>>;
  method: string;
  target: string;
  status: number;
  request: CopiedMessage;
  original: CopiedOriginal | undefined;
  response: CopiedMessage;
}

/** The recording of one worker. */
export class RecordingLog {
  /** Undefined if no route records. */
  writer: AccessLogWriter | undefined;
  /** Exchanges that were not recorded because of a bound. */
  skipped = 0;
  readonly budget = new CopyBudget(COPIED_BYTES_MAX);
  readonly #writing = new Set<Promise<void>>();

  /** Writes an exchange in the background; `release` is called when its memory is no longer used. */
  write(
    exchange: CopiedExchange,
    redactor: Redactor,
    options: { bodyBytesMax: number; release: () => void },
  ): void {
    const written = this.#write(exchange, redactor, options.bodyBytesMax)
      // A fault of one exchange must not end the worker; it is counted.
      .catch(() => void this.skipped++)
      .finally(() => {
        options.release();
        this.#writing.delete(written);
      });
    this.#writing.add(written);
  }

  /** Writes the rest and closes the file. */
  async close(): Promise<void> {
    await Promise.all(this.#writing);
    await this.writer?.close();
    this.writer = undefined;
  }

  async #write(exchange: CopiedExchange, redactor: Redactor, bytesMax: number): Promise<void> {
    const { line, method, target, status, request, original, response } = exchange;
    const recorded: Pick<RecordedExchange, "request" | "original" | "response"> = {
      request: {
        method,
        target: redactor.redactTarget(target),
        headers: redactor.redactFields(request.fields),
        body: await describeCopy(request, redactor, bytesMax),
      },
      ...(original === undefined
        ? {}
        : { original: await describeOriginal(original, redactor, bytesMax) }),
      response: {
        status,
        headers: redactor.redactFields(response.fields),
        body: await describeCopy(response, redactor, bytesMax),
      },
    };
    const text = `${escapeNonAscii(JSON.stringify({ ...line, ...recorded }))}\n`;
    // Bodies are larger without their coding, and in JSON.
    if (text.length > RECORDED_LINE_BYTES_MAX) this.skipped++;
    else this.writer?.append(text);
  }
}

async function describeOriginal(
  { method, target, fields, body }: CopiedOriginal,
  redactor: Redactor,
  bytesMax: number,
): Promise<NonNullable<RecordedExchange["original"]>> {
  const content =
    body === undefined ? {} : { body: await describeCopy({ fields, body }, redactor, bytesMax) };
  return {
    method,
    target: redactor.redactTarget(target),
    headers: redactor.redactFields(fields),
    ...content,
  };
}

async function describeCopy(
  { fields, body }: CopiedMessage,
  redactor: Redactor,
  bytesMax: number,
): Promise<RecordedBody> {
  const content = body.read();
  if (content !== undefined) return describeBody({ fields, content }, redactor, bytesMax);
  const sha256 = body.digest();
  return {
    bytes: body.bytes,
    omitted: body.omission,
    ...(sha256 === undefined ? {} : { sha256 }),
  };
}
