// A thread that answers questions, one after another. Whatever a question does to it, the service only replaces it.
import { parentPort } from "node:worker_threads";
import { answerQuestion } from "./answer-question.ts";
import { SelectError } from "./language/fault.ts";
import {
  RESULT_BYTES_MAX,
  RESUME_BYTES,
  type SelectStats,
  type ThreadRequest,
  type ThreadResponse,
} from "./messages.ts";
import type { ObjectSource } from "./input/row-input.ts";

const port = parentPort!;
/** The number of the range that is read. */
let range = 0;
/** Its bytes that have come, and `undefined` behind the last ones. */
let pieces: (Uint8Array | undefined)[] = [];
let onPiece: (() => void) | undefined;
let resume: (() => void) | undefined;
/** Bytes of results that have not been sent. */
let unsentBytes = 0;
let scannedBytes = 0;
/** Counts of the question so far. */
let readStats: () => SelectStats;

function post(response: ThreadResponse, transfer: ArrayBuffer[] = []): void {
  port.postMessage(response, transfer);
}

/** Reads a range of the object, piece by piece. */
async function* read(start: number, end: number): AsyncGenerator<Buffer, void, undefined> {
  range += 1;
  pieces = [];
  post({ type: "open", range, start, end });
  try {
    for (;;) {
      if (pieces.length === 0) {
        await new Promise<void>((resolve) => {
          onPiece = resolve;
        });
      }
      const bytes = pieces.shift();
      if (bytes === undefined) return;
      scannedBytes += bytes.length;
      yield Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
      post({ type: "taken", range, bytes: bytes.length, stats: readStats() });
    }
  } finally {
    post({ type: "close" });
  }
}

async function answer({
  request,
  sizeBytes,
  nowMs,
}: Extract<ThreadRequest, { type: "ask" }>): Promise<void> {
  unsentBytes = 0;
  scannedBytes = 0;
  readStats = () => ({ scannedBytes, processedBytes: 0, returnedBytes: 0 });
  const source: ObjectSource = { sizeBytes, read };
  try {
    const stats = await answerQuestion(request, {
      source,
      nowMs,
      scannedBytes: () => scannedBytes,
      onBegun: (read) => {
        readStats = read;
      },
      send: (records, current) => {
        // Own memory, so that it can be transferred.
        const bytes = new Uint8Array(records);
        unsentBytes += bytes.length;
        const isWaiting = unsentBytes > RESULT_BYTES_MAX;
        post({ type: "records", bytes, stats: current, isWaiting }, [bytes.buffer]);
        if (!isWaiting) return undefined;
        return new Promise((resolve) => {
          resume = resolve;
        });
      },
    });
    post({ type: "done", stats });
  } catch (error) {
    post({ ...describeFailure(error), stats: readStats() });
  }
}

function describeFailure(
  error: unknown,
): Omit<Extract<ThreadResponse, { type: "failed" }>, "stats"> {
  if (error instanceof SelectError) {
    const { code, message, place } = error;
    return { type: "failed", code, message, place };
  }
  if (error instanceof RangeError) {
    const message = "The question needs too much memory, or values are nested too deeply.";
    return { type: "failed", code: "QueryLimitExceeded", message, place: undefined };
  }
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error);
  return { type: "failed", code: "InternalError", message, place: undefined };
}

port.on("message", (message: ThreadRequest) => {
  switch (message.type) {
    case "ask":
      void answer(message);
      return;
    case "bytes":
      // Those of an earlier range may have been on their way.
      if (message.range !== range) return;
      pieces.push(message.bytes);
      onPiece?.();
      return;
    case "sent":
      unsentBytes -= message.bytes;
      if (unsentBytes <= RESUME_BYTES) resume?.();
      return;
    default:
      message satisfies never;
  }
});
