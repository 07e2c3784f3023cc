// Dead letters as the API sends them, and requeueing with a JSON Patch, which the service applies.
import { withQuery } from "../api/api.ts";
import { callBroker } from "./broker.ts";

/** Letters of one request. */
const PAGE = 500;
const SHOWN_MAX = 1_000;

/** Letters with one cause. */
export interface Cause {
  id: string;
  topic: string;
  reason: string;
  count: number;
  /** Epoch s. */
  first: number;
}

/** A dead letter. */
export interface Letter {
  message_id: string;
  topic: string;
  original_payload: string;
  failure_reason: string;
  /** Epoch s. */
  timestamp: number;
  retry_count: number;
}

/** Outcome for one letter. */
interface Requeued {
  message_id: string;
  /** In a trial: the payload as it would be sent. */
  payload?: string;
  error: { detail: string } | null;
}

/** Result of a request. */
export interface RequeueResult {
  succeeded: number;
  failed: number;
  items: Requeued[];
}

/** Letters that are requeued: all of a cause, or some by their ids. */
export type Choice = { topic: string } & ({ cause: string } | { ids: readonly string[] });

/** A typed patch: its operations, and why it is not a patch. */
export interface TypedPatch {
  operations: unknown[] | undefined;
  error: string | undefined;
}

/** Reads a typed patch; empty text is no patch. The service checks its operations. */
export function readPatch(text: string): TypedPatch {
  if (text.trim() === "") return { operations: undefined, error: undefined };
  try {
    const operations: unknown = JSON.parse(text);
    if (Array.isArray(operations)) return { operations, error: undefined };
    return { operations: undefined, error: "[…]" };
  } catch (error) {
    return { operations: undefined, error: (error as Error).message };
  }
}

/** Loads letters of a cause, oldest first; at most 1 000. */
export async function loadLetters({ topic, reason }: Cause): Promise<Letter[]> {
  const found: Letter[] = [];
  let cursor: string | undefined;
  do {
    const path = withQuery("/dlq", { topic, cause: reason, limit: PAGE, cursor });
    const page = await callBroker<{ items: Letter[]; next_cursor: string | null }>(path);
    found.push(...page.items);
    cursor = page.next_cursor ?? undefined;
  } while (cursor !== undefined && found.length < SHOWN_MAX);
  return found.slice(0, SHOWN_MAX);
}

/** Applies a patch to some letters without sending them. */
export async function tryPatch(choice: Choice, patch: TypedPatch): Promise<RequeueResult> {
  return await post(choice, patch, true);
}

/** Requeues letters until none of the choice is left, or none of a request succeeds. */
export async function requeue(choice: Choice, patch: TypedPatch): Promise<RequeueResult> {
  const all: RequeueResult = { succeeded: 0, failed: 0, items: [] };
  for (;;) {
    const { succeeded, failed, items } = await post(choice, patch, false);
    all.succeeded += succeeded;
    all.failed = failed;
    all.items = items;
    if ("ids" in choice || succeeded === 0 || items.length < PAGE) return all;
  }
}

async function post(
  choice: Choice,
  { operations }: TypedPatch,
  isTrial: boolean,
): Promise<RequeueResult> {
  const json = {
    ...choice,
    ...(operations === undefined ? {} : { patch: operations }),
    dry_run: isTrial,
  };
  return await callBroker("/dlq/requeue", { method: "POST", json });
}
