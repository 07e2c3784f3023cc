// The bodies of answers to questions: records alone, or an event stream that says that it goes on.
import {
  encodeContinuation,
  encodeEnd,
  encodeError,
  encodeRecords,
  encodeStats,
} from "../../select/output/event-stream.ts";
import type { Answer } from "../../select/select-pool.ts";
import { toS3Error } from "../answer.ts";

/** Time without records after which the event stream says that it goes on. */
export const QUIET_MS = 5_000;

/** The first records. */
type FirstRecords = Promise<Buffer | undefined>;

/** Waits for the first records, so that errors before them are answered with their status; not longer than `waitMs`. */
export async function awaitFirst(
  answer: Answer,
  waitMs: number,
): Promise<{ readonly records: FirstRecords }> {
  const records = takeNext(answer);
  await raceQuiet(records, waitMs);
  return { records };
}

/** Yields the records. Throws the error of the question. */
export async function* passRecords(
  answer: Answer,
  first: { readonly records: FirstRecords },
): AsyncGenerator<Buffer, void, undefined> {
  for (let records = await first.records; records !== undefined; records = await answer.next()) {
    yield records;
  }
}

/** Yields the messages of the event stream, of which the last one may be an error. */
export async function* passEvents(
  answer: Answer,
  first: { readonly records: FirstRecords },
  reportsProgress: boolean,
): AsyncGenerator<Buffer, void, undefined> {
  let next = first.records;
  try {
    for (;;) {
      const records = await raceQuiet(next, QUIET_MS);
      if (records === undefined) break;
      if (records === "quiet") yield encodeContinuation();
      else {
        yield* encodeRecords(records);
        next = takeNext(answer);
      }
      if (reportsProgress) yield encodeStats("Progress", answer.stats);
    }
  } catch (error) {
    const { code, message } = toS3Error(error);
    yield encodeError(code, message);
    return;
  }
  yield encodeStats("Stats", answer.stats);
  yield encodeEnd();
}

// A client that leaves may leave a promise behind that nobody awaits.
function takeNext(answer: Answer): FirstRecords {
  const records = answer.next();
  records.catch(() => undefined);
  return records;
}

async function raceQuiet<Result>(work: Promise<Result>, waitMs: number): Promise<Result | "quiet"> {
  const { promise, resolve } = Promise.withResolvers<"quiet">();
  const timer = setTimeout(() => resolve("quiet"), waitMs);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
  }
}
