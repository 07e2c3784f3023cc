// Bodies by media type: JSON, forms, uploads, text, bytes.
import { HttpError } from "../error/http-error.ts";

/** A form: single values are strings or files, repeated names are arrays. The object has no prototype. */
export type FormFields = Readonly<Record<string, FormValue | readonly FormValue[]>>;

/** A value of a form. Files are held in memory. */
export type FormValue = string | File;

const PARTS_MAX = 1_000;
const JSON_TYPE = /^(?:application\/json|[\w.-]+\/[\w.-]+\+json)$/;
/** The name, or an escape that may be part of it. */
const MAY_NAME_PROTOTYPE = /__proto__|\\u005f/i;
const decoder = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a body by its Content-Type: JSON to its value, forms to an object, `text/*` to a string, others to bytes. An
 * empty body is undefined. `curl -d '{"a":1}'` declares a form, so a form that is a JSON document is read as JSON. Throws
 * 400 if the body is malformed.
 */
export async function parseBody(bytes: Buffer, contentType: string | undefined): Promise<unknown> {
  if (bytes.length === 0) return undefined;
  const type = (contentType ?? "").split(";", 1)[0]!.trim().toLowerCase();
  if (type === "" || JSON_TYPE.test(type)) return parseJson(bytes);
  if (type === "application/x-www-form-urlencoded") return parseUrlEncoded(bytes);
  if (type === "multipart/form-data") return parseMultipart(bytes, contentType!);
  return type.startsWith("text/") ? decodeText(bytes) : bytes;
}

/** Parses JSON synchronously; see `parseBody`. */
export function parseJson(bytes: Buffer): unknown {
  const text = decodeText(bytes);
  try {
    return JSON.parse(text, MAY_NAME_PROTOTYPE.test(text) ? dropPrototype : undefined) as unknown;
  } catch (error) {
    throw new HttpError(400, `The body is not valid JSON: ${(error as SyntaxError).message}`);
  }
}

/** True for a Content-Type that `parseJson` reads. */
export function isJsonType(contentType: string | undefined): boolean {
  return contentType === undefined || contentType === "application/json";
}

// A member of this name would become the prototype of objects that are merged from the body.
function dropPrototype(name: string, value: unknown): unknown {
  return name === "__proto__" ? undefined : value;
}

function decodeText(bytes: Buffer): string {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new HttpError(400, "The body is not valid UTF-8.");
  }
}

function parseUrlEncoded(bytes: Buffer): unknown {
  const text = decodeText(bytes);
  if (/^\s*[[{]/.test(text)) return parseJson(bytes);
  return collectFields(new URLSearchParams(text));
}

async function parseMultipart(bytes: Buffer, contentType: string): Promise<FormFields> {
  const boundary = /boundary=(?:"([^"]{1,70})"|([^\s;,]{1,70}))/i.exec(contentType);
  const mark = boundary?.[1] ?? boundary?.[2];
  if (mark === undefined) throw new HttpError(400, "The form has no valid boundary.");
  if (countParts(bytes, `--${mark}`) > PARTS_MAX) {
    throw new HttpError(413, `The form has more than ${PARTS_MAX} parts.`);
  }
  try {
    const body = new Uint8Array(bytes);
    const form = await new Response(body, { headers: { "Content-Type": contentType } }).formData();
    return collectFields(form);
  } catch (error) {
    if (error instanceof HttpError) throw error;
    throw new HttpError(400, "The form is malformed.", { cause: error });
  }
}

function countParts(bytes: Buffer, mark: string): number {
  let count = 0;
  for (let at = bytes.indexOf(mark); at !== -1; at = bytes.indexOf(mark, at + mark.length)) {
    if (++count > PARTS_MAX + 1) break;
  }
  return count - 1;
}

function collectFields(entries: Iterable<[string, FormValue]>): FormFields {
  const fields = Object.create(null) as Record<string, FormValue | FormValue[]>;
  let count = 0;
  for (const [name, value] of entries) {
    if (++count > PARTS_MAX)
      throw new HttpError(413, `The form has more than ${PARTS_MAX} fields.`);
    const known = fields[name];
    if (known === undefined) fields[name] = value;
    else if (Array.isArray(known)) known.push(value);
    else fields[name] = [known, value];
  }
  return fields;
}
