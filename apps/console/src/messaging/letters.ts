// Dead letters as the API sends them, and requeueing with a JSON Patch, which the service applies.
import type { Answer } from "../contract/answer.ts";
import { ApiFailure, withQuery } from "../api/api.ts";
import { readJson } from "../view/json-fault.ts";
import { t } from "../words/words.ts";
import { callAllTenants, callTenant } from "./broker.ts";

/** Letters of one request. */
const PAGE = 500;
const SHOWN_MAX = 1_000;

/** Letters with one cause. */
export interface Cause {
  id: string;
  topic: string;
  /** In lists of all tenants. */
  tenant: string | undefined;
  reason: string;
  /** Of the newest letters, which were counted. */
  count: number;
  /** False if the topic has letters that were not counted. */
  isComplete: boolean;
  /** Epoch s. */
  first: number;
}

/** Causes, the most frequent first. */
export interface Causes {
  causes: Cause[];
  /** Letters in all. */
  total: number;
  isComplete: boolean;
}

type CausesAnswer = Answer<"pulse", "GET /dlq/causes">;

/** Loads the causes of one topic, or of all. */
export async function loadCauses(topic: string | undefined): Promise<Causes> {
  const answer = await callAllTenants<CausesAnswer>(withQuery("/dlq/causes", { topic }));
  const causes = answer.causes.map(
    ({
      topic: name,
      tenant,
      reason,
      count,
      first_seen: first,
      is_complete: isComplete,
    }): Cause => ({
      id: `${tenant ?? ""} ${name} ${reason}`,
      topic: name,
      tenant,
      reason,
      count,
      isComplete,
      first,
    }),
  );
  return { causes, total: answer.total, isComplete: answer.is_complete };
}

/** A dead letter. */
export type Letter = Answer<"pulse", "GET /dlq">["items"][number];

/** Result of a request. */
export type RequeueResult = Omit<Answer<"pulse", "POST /dlq/requeue">, "dry_run">;

/** Letters that are requeued: all of a cause, or some by their ids. */
export type Choice = { topic: string; tenant: string | undefined } & (
  | { cause: string }
  | { ids: readonly string[] }
);

/** Changes of payloads before they are requeued. */
export interface LetterChange {
  /** JSON Patch (RFC 6902). */
  operations: unknown[] | undefined;
  /** Values that get another type without loss, before the patch. */
  conversions?: unknown[] | undefined;
}

/** A typed patch: its operations, and why it is not a patch. */
export interface TypedPatch extends LetterChange {
  error: string | undefined;
}

/** Reads a typed patch; empty text is no patch. The service checks its operations. */
export function readPatch(text: string): TypedPatch {
  if (text.trim() === "") return { operations: undefined, error: undefined };
  const { value, problem } = readJson(text);
  if (problem !== undefined) {
    const { line, column = 1, message } = problem;
    const place = t("Line {line}, column {column}", { line, column });
    return { operations: undefined, error: `${place}: ${message}` };
  }
  if (Array.isArray(value)) return { operations: value, error: undefined };
  return { operations: undefined, error: t("A list is expected") };
}

/** Loads letters of a cause, oldest first; at most 1 000. */
export async function loadLetters({ topic, tenant, reason }: Cause): Promise<Letter[]> {
  const found: Letter[] = [];
  let cursor: string | undefined;
  do {
    const path = withQuery("/dlq", { topic, cause: reason, limit: PAGE, cursor });
    const page = await callTenant<Answer<"pulse", "GET /dlq">>(tenant, path);
    found.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && found.length < SHOWN_MAX);
  return found.slice(0, SHOWN_MAX);
}

/** Changes some letters without sending them. */
export async function tryChange(choice: Choice, change: LetterChange): Promise<RequeueResult> {
  return await postAll(choice, change, true);
}

/** Requeues all letters of the choice, request by request. Letters that fail are passed over, and counted. */
export async function requeue(choice: Choice, change: LetterChange): Promise<RequeueResult> {
  return await postAll(choice, change, false);
}

async function postAll(
  choice: Choice,
  change: LetterChange,
  isTrial: boolean,
): Promise<RequeueResult> {
  const all: RequeueResult = { succeeded: 0, failed: 0, items: [], next_cursor: null };
  let cursor: string | undefined;
  do {
    const page = await post(choice, change, isTrial, cursor);
    all.succeeded += page.succeeded;
    all.failed += page.failed;
    // Of many only what failed is of interest, and only some of it.
    const kept = isTrial ? page.items : page.items.filter(({ error }) => error !== null);
    all.items = all.items.concat(kept).slice(0, PAGE);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined);
  return all;
}

async function post(
  choice: Choice,
  { operations, conversions }: LetterChange,
  isTrial: boolean,
  cursor?: string,
): Promise<RequeueResult> {
  const { tenant, ...letters } = choice;
  const json = {
    ...letters,
    ...(cursor === undefined ? {} : { cursor }),
    ...(conversions === undefined ? {} : { convert: conversions }),
    ...(operations === undefined ? {} : { patch: operations }),
    dry_run: isTrial,
  };
  try {
    return await callTenant(tenant, "/dlq/requeue", { method: "POST", json });
  } catch (error) {
    // The last request of several may find none.
    const isEnd = cursor !== undefined && error instanceof ApiFailure && error.status === 404;
    if (!isEnd) throw error;
    return { succeeded: 0, failed: 0, items: [], next_cursor: null };
  }
}
