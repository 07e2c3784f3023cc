// The usual fields of JSON messages and their types, and which of them have changed.
import type { Finding, Severity } from "./anomaly-log.ts";

/** Types of a field; the index is the code. */
const TYPES = ["absent", "null", "boolean", "number", "string", "array", "object", "not JSON"];
const ABSENT = 0;
const NOT_JSON = 7;
const ROOT = "";
const PATHS_MAX = 500;
const DEPTH_MAX = 8;
const PATH_CHARACTERS_MAX = 200;
/** Characters of all paths: a baseline is stored in 32 KiB. */
const NAMES_MAX = 16_000;
/** Latest messages, among which a change must show. */
const WINDOW = 60;
/** Messages from which a field must be known. */
const KNOWN_MIN = 500;
/** Counts are halved there, so that what was usual long ago is forgotten. */
const COUNTED_MAX = 20_000;
/** Share of the window by which a field must differ, and deviations of what chance alone makes of a window. */
const CHANGED_SHARE = 0.2;
const CHANGED_DEVIATIONS = 5;
/** Share up to which a type or a field counts as never seen. */
const RARE_SHARE = 0.01;
/** Time after which a change is the usual form. */
const ADOPTED_MS = 3_600_000;

/** The counts that are stored: of messages in which the field was absent, null, a boolean, … */
export type StoredPath = readonly [path: string, ...counts: number[]];

/** A field in the messages before the window and in the window. */
class Field {
  /** By code. Messages are counted when they leave the window. */
  readonly counts: number[];
  readonly #window: Uint8Array;
  readonly #inWindow = TYPES.map(() => 0);
  #at = 0;
  /** Messages before the window. */
  total: number;
  /** Time of the first sample in which the change showed that shows now, epoch ms. */
  changedMs: number | undefined;

  constructor(counts: readonly number[]) {
    this.counts = [...counts];
    this.total = sum(counts);
    const usual = counts.indexOf(Math.max(...counts));
    this.#window = new Uint8Array(WINDOW).fill(usual);
    this.#inWindow[usual] = WINDOW;
  }

  observe(code: number): void {
    const before = this.#window[this.#at]!;
    this.#inWindow[before]!--;
    this.#inWindow[code]!++;
    this.#window[this.#at] = code;
    this.#at = (this.#at + 1) % WINDOW;
    // Unusual messages do not become usual by their number.
    if (this.changedMs !== undefined) return;
    this.counts[before]!++;
    this.total++;
    if (this.total <= COUNTED_MAX) return;
    for (const each of this.counts.keys()) this.counts[each]! /= 2;
    this.total /= 2;
  }

  /** Share of a code among the messages before the window. */
  usual(code: number): number {
    return this.counts[code]! / Math.max(1, this.total);
  }

  recent(code: number): number {
    return this.#inWindow[code]! / WINDOW;
  }

  /** The window becomes what is usual. */
  adopt(): void {
    for (const code of this.counts.keys()) {
      this.counts[code] = (this.#inWindow[code]! * KNOWN_MIN * 2) / WINDOW;
    }
    this.total = sum(this.counts);
    this.changedMs = undefined;
  }
}

function sum(counts: readonly number[]): number {
  return counts.reduce((total, count) => total + count, 0);
}

/** The fields of a topic's messages. */
export class ShapeBaseline {
  readonly #fields = new Map<string, Field>();
  #characters = 0;

  constructor(stored: readonly StoredPath[] = []) {
    for (const [path, ...counts] of stored) {
      if (counts.length === TYPES.length) this.#add(path, counts);
    }
  }

  /** Number of fields. */
  get paths(): number {
    return this.#fields.size;
  }

  store(): StoredPath[] {
    return Array.from(this.#fields, ([path, { counts }]) => [path, ...counts.map(Math.round)]);
  }

  /** Takes a message: its parsed payload, or undefined if that is not JSON. */
  observe(content: { readonly value: unknown } | undefined): void {
    if (content === undefined) {
      this.#fieldOf(ROOT)?.observe(NOT_JSON);
      return;
    }
    const found = new Map<string, number>();
    collect(content.value, ROOT, 0, found);
    for (const [path, field] of this.#fields) {
      field.observe(found.get(path) ?? ABSENT);
      found.delete(path);
    }
    for (const [path, code] of found) this.#fieldOf(path)?.observe(code);
  }

  /** Finds the fields in which the latest messages differ from those before. */
  judge(nowMs: number): Finding[] {
    const findings = new Map<string, Finding>();
    const isKnown = (this.#fields.get(ROOT)?.total ?? 0) >= KNOWN_MIN;
    if (!isKnown) return [];
    for (const [path, field] of this.#fields) {
      const change = describeChange(path, field);
      if (change === undefined) {
        field.changedMs = undefined;
        continue;
      }
      field.changedMs ??= nowMs;
      if (nowMs - field.changedMs >= ADOPTED_MS) field.adopt();
      else findings.set(path, { ...change, since: field.changedMs });
    }
    // A field that goes or comes takes its own fields with it.
    return [...findings].flatMap(([path, finding]) =>
      findings.has(parentOf(path)) && path !== ROOT ? [] : [finding],
    );
  }

  #fieldOf(path: string): Field | undefined {
    const known = this.#fields.get(path);
    if (known !== undefined) return known;
    if (this.#fields.size >= PATHS_MAX || this.#characters + path.length > NAMES_MAX) {
      this.#dropRare();
      if (this.#fields.size >= PATHS_MAX || this.#characters + path.length > NAMES_MAX)
        return undefined;
    }
    const counts = TYPES.map(() => 0);
    // It was absent from the messages before.
    if (path !== ROOT) counts[ABSENT] = this.#fields.get(ROOT)?.total ?? 0;
    return this.#add(path, counts);
  }

  #add(path: string, counts: readonly number[]): Field {
    const field = new Field(counts);
    this.#fields.set(path, field);
    this.#characters += path.length;
    return field;
  }

  // Names that are values, such as ids, come once and fill the table.
  #dropRare(): void {
    for (const [path, field] of this.#fields) {
      if (path === ROOT || field.recent(ABSENT) < 1 || field.usual(ABSENT) < 1 - RARE_SHARE)
        continue;
      this.#fields.delete(path);
      this.#characters -= path.length;
    }
  }
}

function collect(value: unknown, path: string, depth: number, found: Map<string, number>): void {
  if (path.length > PATH_CHARACTERS_MAX || found.size > PATHS_MAX) return;
  found.set(path, codeOf(value));
  if (typeof value !== "object" || value === null || depth === DEPTH_MAX) return;
  if (Array.isArray(value)) {
    if (value.length > 0) collect(value[0], `${path}[]`, depth + 1, found);
    return;
  }
  for (const [name, inner] of Object.entries(value)) {
    collect(inner, path === ROOT ? name : `${path}.${name}`, depth + 1, found);
  }
}

function codeOf(value: unknown): number {
  if (value === null) return TYPES.indexOf("null");
  return TYPES.indexOf(Array.isArray(value) ? "array" : typeof value);
}

function parentOf(path: string): string {
  if (path.endsWith("[]")) return path.slice(0, -2);
  return path.slice(0, Math.max(0, path.lastIndexOf(".")));
}

function describeChange(path: string, field: Field): Omit<Finding, "since"> | undefined {
  const place = path === ROOT ? {} : { path };
  const notJson = field.recent(NOT_JSON);
  if (notJson - field.usual(NOT_JSON) >= CHANGED_SHARE) {
    const shares = describeShares(notJson, field.usual(NOT_JSON));
    return { kind: "not_json", ...shares, detail: "Payloads are not JSON." };
  }
  const present = 1 - field.recent(ABSENT);
  const usual = 1 - field.usual(ABSENT);
  if (usual <= RARE_SHARE) {
    if (present < CHANGED_SHARE) return undefined;
    const detail = `${name(path)} was not in earlier messages.`;
    return { kind: "field_new", ...place, ...describeShares(present, usual), detail };
  }
  if (usual * field.total < KNOWN_MIN) return undefined;
  const chance = Math.sqrt((usual * (1 - usual)) / WINDOW);
  if (usual - present >= Math.max(CHANGED_SHARE, CHANGED_DEVIATIONS * chance)) {
    const detail = `${name(path)} is missing.`;
    return { kind: "field_missing", ...place, ...describeShares(present, usual), detail };
  }
  return describeTypes(path, field, usual);
}

/** Types that the field has now and hardly had before. */
function describeTypes(
  path: string,
  field: Field,
  usual: number,
): Omit<Finding, "since"> | undefined {
  let share = 0;
  let most = ABSENT;
  for (const code of TYPES.keys()) {
    if (code === ABSENT || field.usual(code) > RARE_SHARE * usual) continue;
    share += field.recent(code);
    if (field.recent(code) > field.recent(most) || most === ABSENT) most = code;
  }
  if (share < CHANGED_SHARE) return undefined;
  const before = TYPES.keys().reduce((best, code) =>
    code !== ABSENT && (best === ABSENT || field.usual(code) > field.usual(best)) ? code : best,
  );
  const [observed, expected] = [TYPES[most]!, TYPES[before]!];
  return {
    kind: "type_changed",
    ...(path === ROOT ? {} : { path }),
    severity: toSeverity(share),
    observed,
    expected,
    detail: `${name(path)} was ${expected} and is ${observed} in ${Math.round(share * 100)} % of the latest messages.`,
  };
}

function describeShares(
  observed: number,
  expected: number,
): Pick<Finding, "severity" | "observed" | "expected"> {
  const severity = toSeverity(Math.abs(observed - expected));
  return { severity, observed: round(observed), expected: round(expected) };
}

function toSeverity(share: number): Severity {
  return share >= 0.8 ? "high" : share >= 0.5 ? "medium" : "low";
}

function round(share: number): number {
  return Math.round(share * 1_000) / 1_000;
}

function name(path: string): string {
  return path === ROOT ? "The payload" : path;
}
