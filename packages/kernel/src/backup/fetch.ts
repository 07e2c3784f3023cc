// Fetches the backup of a running service.
import { request as requestHttp, type IncomingMessage } from "node:http";
import { request as requestHttps } from "node:https";
import { BackupError } from "./error.ts";
import { collectBytes } from "./files.ts";
import { BACKUP_BYTES_HEADER, BACKUP_PATH } from "./route.ts";

const PROBLEM_BYTES_MAX = 64 * 1024;
/** A large index is copied before the answer begins. */
const ANSWER_MS_MAX = 3_600_000;
/** A service that sends nothing for this time is stuck. */
const STALL_MS_MAX = 120_000;

/** Options of `fetchBackup`. */
export interface FetchOptions {
  /** Base URL of the service. */
  url: string;
  /** Its `backup_token`. */
  token: string;
  /** False for a service of this machine, whose certificate is for a public name. Default true. */
  verifiesCertificate?: boolean | undefined;
  signal?: AbortSignal | undefined;
}

/** An answer: the archive for `receiveBackup`, and its approximate size if the service has sent it. */
export interface FetchedBackup {
  stream: AsyncIterable<Buffer>;
  bytesTotal: number | undefined;
}

/** Requests a backup. Rejects with BackupError, which contains the service's own message, if it is refused. */
export async function fetchBackup(options: FetchOptions): Promise<FetchedBackup> {
  const answer = await ask(options);
  if (answer.statusCode !== 200) {
    const bytes = await collectBytes(answer, PROBLEM_BYTES_MAX, "the answer");
    throw new BackupError(readProblem(bytes) ?? `the service answered ${answer.statusCode}`);
  }
  const bytes = Number(answer.headers[BACKUP_BYTES_HEADER]);
  const stream = { [Symbol.asyncIterator]: () => readAnswer(answer) };
  return { stream, bytesTotal: Number.isSafeInteger(bytes) ? bytes : undefined };
}

function ask({
  url,
  token,
  verifiesCertificate = true,
  signal,
}: FetchOptions): Promise<IncomingMessage> {
  const target = new URL(BACKUP_PATH, url);
  const request = target.protocol === "https:" ? requestHttps : requestHttp;
  return new Promise((resolve, reject) => {
    const asked = request(target, {
      headers: { authorization: `Bearer ${token}` },
      timeout: ANSWER_MS_MAX,
      rejectUnauthorized: verifiesCertificate,
      ...(signal === undefined ? {} : { signal }),
    });
    asked.once("response", (answer) => {
      asked.setTimeout(STALL_MS_MAX);
      resolve(answer);
    });
    asked.on("timeout", () => asked.destroy(new BackupError("the service has stopped answering")));
    asked.on("error", (cause) => reject(explain(cause)));
    asked.end();
  });
}

// A caller that leaves before the first piece must end the connection as well, which a generator would not do.
function readAnswer(answer: IncomingMessage): AsyncIterator<Buffer> {
  const pieces = answer[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  return {
    next: () => pieces.next().catch((cause: unknown) => Promise.reject(explain(cause))),
    return: () => {
      answer.destroy();
      return Promise.resolve({ done: true, value: undefined });
    },
  };
}

function explain(cause: unknown): Error {
  if (cause instanceof BackupError || !(cause instanceof Error)) return cause as Error;
  const { code } = cause as NodeJS.ErrnoException;
  if (code === "ABORT_ERR") return cause;
  const what = code === "ECONNRESET" ? "the service ended the stream; see its log" : cause.message;
  return new BackupError(what, { cause });
}

function readProblem(bytes: Buffer): string | undefined {
  try {
    const problem: unknown = JSON.parse(bytes.toString("utf8"));
    const isProblem = typeof problem === "object" && problem !== null && "detail" in problem;
    return isProblem && typeof problem.detail === "string" ? problem.detail : undefined;
  } catch {
    return undefined;
  }
}
