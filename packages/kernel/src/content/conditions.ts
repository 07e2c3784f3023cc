// Conditional and range requests for a representation with known validators (RFC 9110 sections 13 and 14).
import { matchesTag } from "./entity-tag.ts";
import { type ByteRange, readRanges } from "./ranges.ts";

/** Returns the value of a request field by its lower-case name, several lines joined by `, `; undefined if absent. */
export type ReadField = (name: string) => string | undefined;

/** The representation that a GET or HEAD selects. */
export interface Validators {
  etag: string;
  /** Time of the last change in ms since 1970, undefined if not known. */
  modifiedMs: number | undefined;
  sizeBytes: number;
}

/** Decision about a request. */
export type ConditionResult =
  | { status: 200 | 304 | 412 | 416 }
  | { status: 206; ranges: readonly ByteRange[] };

/** A date is a strong validator if the representation was unchanged for this time when it was sent. */
const STRONG_DATE_AGE_MS = 1_000;

/** Evaluates the conditions of a GET or HEAD in the order of RFC 9110 section 13.2.2. */
export function evaluateConditions(
  method: string,
  read: ReadField,
  validators: Validators,
  nowMs: number,
): ConditionResult {
  const { etag, sizeBytes } = validators;
  const changedMs = floorToSecond(validators.modifiedMs);
  const ifMatch = read("if-match");
  if (ifMatch !== undefined) {
    if (!matchesTag(ifMatch, etag, "strong")) return { status: 412 };
  } else if (isAfter(changedMs, read("if-unmodified-since"))) return { status: 412 };
  const ifNoneMatch = read("if-none-match");
  if (ifNoneMatch !== undefined) {
    if (matchesTag(ifNoneMatch, etag, "weak")) return { status: 304 };
  } else if (isUnchangedSince(changedMs, read("if-modified-since"))) return { status: 304 };
  const range = method === "GET" ? read("range") : undefined;
  if (range === undefined || !isRangeCurrent(read("if-range"), etag, changedMs, nowMs)) {
    return { status: 200 };
  }
  return selectRanges(range, sizeBytes);
}

// HTTP dates have seconds.
function floorToSecond(timeMs: number | undefined): number | undefined {
  return timeMs === undefined ? undefined : Math.floor(timeMs / 1_000) * 1_000;
}

function isAfter(changedMs: number | undefined, field: string | undefined): boolean {
  const limitMs = readDate(field);
  return changedMs !== undefined && limitMs !== undefined && changedMs > limitMs;
}

function isUnchangedSince(changedMs: number | undefined, field: string | undefined): boolean {
  const limitMs = readDate(field);
  return changedMs !== undefined && limitMs !== undefined && changedMs <= limitMs;
}

function isRangeCurrent(
  field: string | undefined,
  etag: string,
  changedMs: number | undefined,
  nowMs: number,
): boolean {
  if (field === undefined) return true;
  if (field.includes('"')) return field.trim() !== "*" && matchesTag(field, etag, "strong");
  const dateMs = readDate(field);
  if (changedMs === undefined || dateMs !== changedMs) return false;
  return nowMs - changedMs >= STRONG_DATE_AGE_MS;
}

function readDate(field: string | undefined): number | undefined {
  if (field === undefined || field.length > 64 || !/\bGMT$/.test(field)) return undefined;
  const timeMs = Date.parse(field);
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

function selectRanges(field: string, sizeBytes: number): ConditionResult {
  const ranges = readRanges(field, sizeBytes);
  if (ranges === undefined) return { status: 200 };
  return ranges.length === 0 ? { status: 416 } : { status: 206, ranges };
}
