// The history of requests and answers, and the check that a store's contents are consistent with it.
import { StoreError } from "../../src/model/store-error.ts";
import type { Store } from "../../src/object-store.ts";
import { makeBytes } from "../store/fixture.ts";

export type OperationKind =
  | "put"
  | "put-if-none"
  | "put-if-match"
  | "put-if-wrong"
  | "multipart"
  | "delete"
  | "contest";

/** A line of a workload. `end` with a code is a refusal, `stale` a read that showed a replaced or deleted object. */
export type HistoryLine =
  | { at: "ready" }
  | { at: "stale"; path: string; found: string; allowed: readonly string[] }
  | { at: "begin"; operation: number; bucket: string; key: string; kind: OperationKind }
  | { at: "end"; operation: number; versionId?: string; code?: string };

interface Operation {
  operation: number;
  bucket: string;
  key: string;
  kind: OperationKind;
  end: Extract<HistoryLine, { at: "end" }> | undefined;
}

/** The body of an operation, generated from its number. */
export function makeBody(operation: number): Buffer {
  const size = [0, 300, 5_000, 15_000, 60_000][operation % 5]!;
  return Buffer.concat([Buffer.from(`${operation};`), makeBytes(size, operation)]);
}

/** Parses lines; the last one may be truncated. */
export function parseHistory(text: string): HistoryLine[] {
  return text
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line) as HistoryLine);
}

/** Contents of a store that its history does not allow. `base` is the contents before the history began. */
export async function judge(
  store: Store,
  lines: readonly HistoryLine[],
  base: ReadonlyMap<string, string>,
): Promise<{ wrong: string[]; state: Map<string, string> }> {
  const wrong = lines
    .filter((line) => line.at === "stale")
    .map(({ path, found, allowed }) => `${path} was read as ${found}, allowed: ${allowed.join()}`);
  const state = new Map(base);
  for (const [path, operations] of groupByKey(lines)) {
    const [first] = operations;
    const { bucket, key, kind } = first!;
    const found = await readState(store, bucket, key);
    const allowed =
      kind === "contest"
        ? judgeContest(operations, wrong)
        : judgeSequence(operations, base.get(path) ?? "nothing", wrong);
    if (!allowed.has(found)) {
      wrong.push(`${path} contains ${found}, allowed are ${[...allowed].join(", ")}`);
    }
    if (bucket === "versioned") await judgeVersions(store, operations, wrong);
    state.set(path, found);
  }
  for (const [path, before] of base) {
    if (lines.some((line) => line.at === "begin" && `${line.bucket}/${line.key}` === path))
      continue;
    const [bucket = "", key = ""] = path.split("/");
    const found = await readState(store, bucket, key);
    if (found !== before) wrong.push(`${path} was not touched: ${before} became ${found}`);
  }
  return { wrong, state };
}

function groupByKey(lines: readonly HistoryLine[]): Map<string, Operation[]> {
  const byNumber = new Map<number, Operation>();
  const byKey = new Map<string, Operation[]>();
  for (const line of lines) {
    if (line.at === "ready" || line.at === "stale") continue;
    if (line.at === "end") {
      const operation = byNumber.get(line.operation);
      if (operation !== undefined) operation.end = line;
      continue;
    }
    const { at: _, ...operation } = line;
    const entry: Operation = { ...operation, end: undefined };
    byNumber.set(line.operation, entry);
    const path = `${line.bucket}/${line.key}`;
    byKey.set(path, [...(byKey.get(path) ?? []), entry]);
  }
  return byKey;
}

/** A full disk refuses, and changes nothing. */
export const FULL = "InsufficientStorage";

// Operations on a key ran one after another; only the last one may have no answer.
function judgeSequence(
  operations: readonly Operation[],
  base: string,
  wrong: string[],
): Set<string> {
  let state = base;
  for (const operation of operations) {
    const { kind, end } = operation;
    const after = kind === "delete" ? "nothing" : `${operation.operation}`;
    const mustFail = kind === "put-if-wrong" || (kind === "put-if-none" && state !== "nothing");
    if (end === undefined) return new Set(mustFail ? [state] : [state, after]);
    if (end.code === FULL) continue;
    const expected = !mustFail
      ? undefined
      : kind === "put-if-wrong" && state === "nothing"
        ? "NoSuchKey"
        : "PreconditionFailed";
    if (end.code !== expected) {
      wrong.push(`${kind} ${operation.operation} ended with ${end.code}, not with ${expected}`);
    }
    if (end.code === undefined) state = after;
  }
  return new Set([state]);
}

function judgeContest(operations: readonly Operation[], wrong: string[]): Set<string> {
  const winners = operations.filter(({ end }) => end !== undefined && end.code === undefined);
  const losers = operations.filter(({ end }) => end?.code !== undefined && end.code !== FULL);
  if (winners.length > 1) wrong.push(`${operations[0]?.key} was created ${winners.length} times`);
  for (const { end } of losers) {
    if (end?.code !== "PreconditionFailed") wrong.push(`a contest was lost with ${end?.code}`);
  }
  if (winners[0] !== undefined) return new Set([`${winners[0].operation}`]);
  const open = operations.filter(({ end }) => end === undefined);
  const allowed = new Set(open.map(({ operation }) => `${operation}`));
  // Callers that were told that the object exists must find it.
  if (losers.length === 0) allowed.add("nothing");
  return allowed;
}

async function judgeVersions(
  store: Store,
  operations: readonly Operation[],
  wrong: string[],
): Promise<void> {
  for (const { operation, kind, bucket, key, end } of operations) {
    if (kind === "delete" || end?.versionId === undefined) continue;
    const found = await readState(store, bucket, key, end.versionId);
    if (found !== `${operation}`) wrong.push(`version ${operation} of ${key} is ${found}`);
  }
}

/** The number of the operation whose body is stored completely, `nothing`, or the violation. */
export async function readState(
  store: Store,
  bucket: string,
  key: string,
  versionId?: string,
): Promise<string> {
  try {
    const address = { bucket, key, ...(versionId === undefined ? {} : { versionId }) };
    const reader = await store.objects.get(address);
    const chunks: Buffer[] = [];
    for await (const chunk of reader.body.chunks()) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    const operation = Number(body.subarray(0, body.indexOf(";")).toString());
    return body.equals(makeBody(operation)) ? `${operation}` : `a damaged ${operation}`;
  } catch (error) {
    if (error instanceof StoreError && error.code === "NoSuchKey") return "nothing";
    if (error instanceof StoreError && error.code === "NoSuchBucket") return "nothing";
    return `an error: ${String(error)}`;
  }
}
