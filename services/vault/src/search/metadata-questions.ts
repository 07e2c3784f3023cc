// SQL on the metadata of a bucket: a state of the index, read by a child process.
import { SqlChildren, SqlError, type SqlAnswer, type SqlOutcome } from "@platform/kernel/sql-child";
import { every, type RepeatingTimer } from "@platform/kernel/time";
import type { QuestionSnapshot } from "../index/question-snapshot.ts";
import { S3Error } from "../model/s3-error.ts";
import type { Store } from "../object-store.ts";
import { createMetadataViews } from "./metadata-views.ts";

const MIB = 1024 * 1024;
const ROWS_MAX = 10_000;
const ANSWER_BYTES_MAX = 16 * MIB;
const MEMORY_BYTES_MAX = 256 * MIB;
const VALUE_BYTES_MAX = MIB;
/** Limit of a statement, in UTF-8. */
export const SQL_BYTES_MAX = 64 * 1024;
/** Children at the same time. */
const CHILDREN = 2;
const LOOK_EVERY_MS = 200;
const RETRY_AFTER_SECONDS = "5";

/** A question in SQL. */
export interface MetadataQuestion {
  readonly tenant: string;
  readonly bucket: string;
  /** Only objects whose keys begin with it. */
  readonly prefix: string;
  readonly sql: string;
  readonly parameters?: readonly (string | number)[];
}

/** Options of {@link MetadataQuestions}. */
export interface MetadataQuestionsOptions {
  readonly store: Pick<Store, "buckets" | "snapshotIndex">;
  readonly timeoutMs: number;
  readonly onFinished: (outcome: SqlOutcome) => void;
}

export class MetadataQuestions {
  readonly #store: MetadataQuestionsOptions["store"];
  readonly #children: SqlChildren;

  constructor({ store, timeoutMs, onFinished }: MetadataQuestionsOptions) {
    this.#store = store;
    this.#children = new SqlChildren({
      children: CHILDREN,
      limits: {
        rows: ROWS_MAX,
        bytes: ANSWER_BYTES_MAX,
        timeMs: timeoutMs,
        memoryBytes: MEMORY_BYTES_MAX,
        valueBytes: VALUE_BYTES_MAX,
        sqlBytes: SQL_BYTES_MAX,
      },
      onFinished,
    });
  }

  /** Questions that wait. */
  get waiting(): number {
    return this.#children.waiting;
  }

  /** Child processes that exist. */
  get children(): number {
    return this.#children.children;
  }

  /** Answers a question with all writes that were acknowledged before it. Rejects with its S3Error. */
  async ask(question: MetadataQuestion, signal: AbortSignal): Promise<SqlAnswer> {
    const { tenant, sql, bucket, prefix, parameters = [] } = question;
    try {
      return await this.#children.ask(
        { tenant, sql, parameters },
        async () => {
          const { id } = this.#store.buckets.requireState(bucket);
          const snapshot = await this.#store.snapshotIndex();
          return {
            database: {
              kind: "views",
              path: snapshot.path,
              isSnapshot: true,
              views: createMetadataViews({ id, name: bucket, prefix }),
            },
            ...watchLog(snapshot),
          };
        },
        signal,
      );
    } catch (error) {
      throw toS3Error(error);
    }
  }

  /** Ends all questions. */
  close(): Promise<void> {
    return this.#children.close();
  }
}

// The snapshot keeps the log of the index from restarting: beyond its limit the question ends, not the writes.
function watchLog(snapshot: QuestionSnapshot): {
  onStarted: (end: (error: Error) => void) => void;
  release: () => Promise<void>;
} {
  let timer: RepeatingTimer | undefined;
  const bytesMax = Math.max(snapshot.logBytesMax, snapshot.measureLog());
  return {
    onStarted: (end) => {
      const check = (): void => {
        if (snapshot.measureLog() <= bytesMax) return;
        end(new S3Error("QueryLimitExceeded", "Too much has changed during the question."));
      };
      timer = every(LOOK_EVERY_MS, check, () => undefined);
    },
    release: async () => {
      await timer?.stop();
      snapshot.release();
    },
  };
}

function toS3Error(error: unknown): unknown {
  if (!(error instanceof SqlError)) return error;
  const { kind, message } = error;
  switch (kind) {
    case "invalid":
      return new S3Error("InvalidQuery", message);
    case "forbidden":
      return new S3Error("UnsupportedSqlOperation", message);
    case "limit":
      return new S3Error("QueryLimitExceeded", message);
    case "busy":
      return new S3Error("Busy", { headers: [["Retry-After", RETRY_AFTER_SECONDS]] });
    case "damaged":
    case "failed":
      return new S3Error("InternalError", { cause: error });
    default:
      return kind satisfies never;
  }
}
