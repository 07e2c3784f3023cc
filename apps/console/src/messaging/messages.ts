// Messages as the API sends them, and filters over them.
import type { Answer } from "../contract/answer.ts";
import { t } from "../words/words.ts";

/** A message of a topic. */
export type Message = Answer<"pulse", "GET /tail">["messages"][number];

/** A topic of the list. */
export type Topic = Answer<"pulse", "GET /topics">["topics"][number];

/** A topic with the tag of its settings. */
export type TopicDetail = Answer<"pulse", "GET /topics/{topic}">;

/** Lag of a group in a partition. */
export type Lag = Answer<"pulse", "GET /consumers/lag">["groups"][number];

/** A filter of messages: the check, and the text to highlight. */
export interface Filter {
  accepts: (raw: string, message: () => Message) => boolean;
  mark: string;
  error?: string;
}

const COMPARISON = /^(key|partition|offset|[\w.[\]]+)\s*(!=|>=|<=|=|>|<|~)\s*(.+)$/;

/**
 * Compiles a filter: text that the message contains, or comparisons `path op value` of payload fields (`ship_to = "AT"`,
 * `items.0.qty > 2`), joined by `and` or `or`.
 */
export function compileFilter(text: string): Filter {
  const wanted = text.trim();
  if (wanted === "") return { accepts: () => true, mark: "" };
  const alternatives = wanted.split(/\s+or\s+/i).map((part) => part.split(/\s+and\s+/i));
  const parsed = alternatives.map((terms) => terms.map(parseTerm));
  const marks = parsed.flat().map((term) => term.mark);
  return {
    accepts: (raw, message) =>
      parsed.some((terms) => terms.every((term) => term.accepts(raw, message))),
    mark: marks.find((mark) => mark !== "") ?? "",
  };
}

function parseTerm(text: string): Filter {
  const found = COMPARISON.exec(text.trim());
  if (found === null) {
    const wanted = text.trim();
    // Payloads are JSON in JSON: quotes are escaped in the raw message.
    const escaped = JSON.stringify(wanted).slice(1, -1);
    return { accepts: (raw) => raw.includes(wanted) || raw.includes(escaped), mark: wanted };
  }
  const [, path = "", operator = "", given = ""] = found;
  const value = readValue(given.trim());
  return {
    accepts: (raw, message) => {
      // Most messages fail this without being parsed.
      if (operator === "=" && typeof value === "string" && !raw.includes(value)) return false;
      return compare(readPath(message(), path), operator, value);
    },
    mark: operator === "=" || operator === "~" ? String(value) : "",
  };
}

function readValue(text: string): string | number | boolean | null {
  try {
    const value: unknown = JSON.parse(text);
    if (value === null || ["string", "number", "boolean"].includes(typeof value)) {
      return value as string | number | boolean | null;
    }
  } catch {
    // Words without quotes are text.
  }
  return text;
}

function readPath(message: Message, path: string): unknown {
  if (path === "key") return message.key;
  if (path === "partition") return message.partition;
  if (path === "offset") return message.offset;
  let value: unknown;
  try {
    value = JSON.parse(message.payload);
  } catch {
    return undefined;
  }
  for (const part of path.replaceAll("]", "").split(/[.[]/)) {
    if (typeof value !== "object" || value === null) return undefined;
    value = Object.hasOwn(value, part) ? (value as Record<string, unknown>)[part] : undefined;
  }
  return value;
}

function compare(
  actual: unknown,
  operator: string,
  wanted: string | number | boolean | null,
): boolean {
  switch (operator) {
    case "=":
      return actual === wanted || String(actual) === String(wanted);
    case "!=":
      return String(actual) !== String(wanted);
    case "~":
      return String(actual).toLowerCase().includes(String(wanted).toLowerCase());
    case ">":
      return Number(actual) > Number(wanted);
    case "<":
      return Number(actual) < Number(wanted);
    case ">=":
      return Number(actual) >= Number(wanted);
    default:
      return Number(actual) <= Number(wanted);
  }
}

/** A parser that keeps the last message, since filter and row read the same one. */
export function createParser(): (raw: string) => Message {
  let last = "";
  let parsed: Message | undefined;
  return (raw) => {
    if (raw !== last || parsed === undefined) {
      parsed = JSON.parse(raw) as Message;
      last = raw;
    }
    return parsed;
  };
}

/** `6 partitions`. */
export function formatPartitions(n: number): string {
  return n === 1 ? t("1 partition") : t("{n} partitions", { n });
}
