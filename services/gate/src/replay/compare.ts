// Compares a recorded response with that of the candidate.
import { createHash } from "node:crypto";
import { REDACTED } from "@platform/kernel/log";
import { decodeContent, readMediaType, readText } from "../recording/body-content.ts";
import type { RecordedExchange, RecordedFields } from "../recording/recorded-exchange.ts";
import type { Redactor } from "../recording/redactor.ts";
import type { CandidateResponse } from "./candidate.ts";
import { compareJson } from "./compare-json.ts";

/** A difference. */
export interface Difference {
  part: "status" | "header" | "body";
  /** Field name, or the place in a JSON body; "" otherwise. */
  name: string;
  /** Shortened; undefined if it is missing on this side. */
  recorded: string | undefined;
  replayed: string | undefined;
}

/** Parts of responses that are not compared. */
export interface Ignored {
  /** Field names in lower case. */
  headers: ReadonlySet<string>;
  /** Places in JSON bodies, such as `items[].updated_at`. */
  members: ReadonlySet<string>;
}

/** Fields of a connection, and those that differ between two responses at different times. */
export const IGNORED_FIELDS: readonly string[] = [
  "age",
  "connection",
  "content-encoding",
  "content-length",
  "date",
  "keep-alive",
  "trailer",
  "transfer-encoding",
  "x-request-id",
];
const DECODED_BYTES_MAX = 33_554_432;
const SHOWN_CHARACTERS = 120;

/** Compares status, header fields and body. Redacted values are equal to any value. */
export async function compareResponses(
  { response }: RecordedExchange,
  replayed: CandidateResponse,
  options: { ignored: Ignored; redactor: Redactor },
): Promise<Difference[]> {
  const differences: Difference[] = [];
  if (response.status !== replayed.status) {
    differences.push({
      part: "status",
      name: "",
      recorded: String(response.status),
      replayed: String(replayed.status),
    });
  }
  const fields = options.redactor.redactFields(replayed.fields);
  differences.push(...compareFields(response.headers, fields, options.ignored.headers));
  differences.push(...(await compareBodies(response, replayed, options)));
  return differences;
}

function compareFields(
  recorded: RecordedFields,
  replayed: RecordedFields,
  ignored: ReadonlySet<string>,
): Difference[] {
  const before = groupFields(recorded);
  const after = groupFields(replayed);
  const names = new Set([...before.keys(), ...after.keys()]);
  return [...names].flatMap((name): Difference[] => {
    const [one, other] = [before.get(name), after.get(name)];
    if (ignored.has(name) || one === other) return [];
    if (one === REDACTED && other !== undefined) return [];
    return [{ part: "header", name, recorded: shorten(one), replayed: shorten(other) }];
  });
}

// The order of different fields has no meaning, that of equal ones has (RFC 9110 section 5.3).
function groupFields(fields: RecordedFields): Map<string, string> {
  const groups = new Map<string, string>();
  for (const [name, value] of fields) {
    const key = name.toLowerCase();
    const known = groups.get(key);
    groups.set(key, known === undefined ? value : `${known}, ${value}`);
  }
  return groups;
}

async function compareBodies(
  { headers, body }: RecordedExchange["response"],
  replayed: CandidateResponse,
  { ignored, redactor }: { ignored: Ignored; redactor: Redactor },
): Promise<Difference[]> {
  const differ = (recorded: string, other: string, name = ""): Difference[] => [
    { part: "body", name, recorded: shorten(recorded), replayed: shorten(other) },
  ];
  if ("omitted" in body && body.sha256 === undefined) return [];
  const content = await decodeReplayed(replayed);
  if ("omitted" in body) {
    // The hash is that of a content without coding, which may be sent with one now.
    const digest =
      content === undefined ? replayed.sha256 : createHash("sha256").update(content).digest("hex");
    if (body.sha256 === digest) return [];
    return differ(`SHA-256 ${body.sha256}`, `SHA-256 ${digest}`);
  }
  if (content === undefined) return differ("a body", "a body that is too long or damaged");
  if ("base64" in body) {
    const before = Buffer.from(body.base64, "base64");
    return before.equals(content) ? [] : differ(...describeBytes(before, content));
  }
  const after = readText(content);
  if (after === undefined) return differ(body.text, `${content.length} bytes that are not text`);
  const clean = redact(redactor, after, readMediaType(replayed.fields));
  if (clean === body.text) return [];
  if (/[/+]json$/.test(readMediaType(headers))) {
    const found = compareJson(body.text, clean, ignored.members);
    if (found !== undefined) {
      return found.map(({ path, recorded, replayed: other }) => ({
        part: "body",
        name: path,
        recorded: shorten(recorded),
        replayed: shorten(other),
      }));
    }
  }
  return differ(...describeTexts(body.text, clean));
}

function decodeReplayed({ fields, content }: CandidateResponse): Promise<Buffer | undefined> {
  if (content === undefined) return Promise.resolve(undefined);
  return decodeContent({ fields, content }, DECODED_BYTES_MAX);
}

function redact(redactor: Redactor, text: string, type: string): string {
  try {
    return redactor.redactBody(text, type);
  } catch {
    // Not JSON, although its type says so: a difference, which is shown.
    return redactor.redactBody(text, "");
  }
}

function describeTexts(recorded: string, replayed: string): [string, string, string] {
  let at = 0;
  while (at < recorded.length && recorded[at] === replayed[at]) at++;
  const from = Math.max(0, at - 20);
  const line = recorded.slice(0, at).split("\n").length;
  return [recorded.slice(from), replayed.slice(from), `line ${line}`];
}

// Bytes are not shown: they may contain credentials, and a terminal shows nothing of them.
function describeBytes(recorded: Buffer, replayed: Buffer): [string, string, string] {
  let at = 0;
  while (at < recorded.length && recorded[at] === replayed[at]) at++;
  const describe = (content: Buffer): string =>
    `${content.length} bytes, SHA-256 ${createHash("sha256").update(content).digest("hex")}`;
  return [describe(recorded), describe(replayed), `byte ${at}`];
}

function shorten(text: string): string;
function shorten(text: string | undefined): string | undefined;
function shorten(text: string | undefined): string | undefined {
  if (text === undefined || text.length <= SHOWN_CHARACTERS) return text;
  return `${text.slice(0, SHOWN_CHARACTERS)}…`;
}
