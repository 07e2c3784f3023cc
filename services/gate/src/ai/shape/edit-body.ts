// Changes parts of a body and leaves all other bytes as they are.
import { JsonKind, type JsonScanner } from "./json-scan.ts";

/** Bytes in place of a range of a body. */
export interface BodyEdit {
  readonly start: number;
  readonly end: number;
  readonly text: string;
}

/** The body with its edits, which must not overlap. */
export function editBody(body: Buffer, edits: readonly BodyEdit[]): Buffer {
  if (edits.length === 0) return body;
  const [first] = edits;
  if (edits.length === 1) return replaceRange(body, first!);
  const pieces: Buffer[] = [];
  let at = 0;
  const sorted = edits.toSorted((one, other) => one.start - other.start);
  for (const { start, end, text } of sorted) {
    pieces.push(body.subarray(at, start), Buffer.from(text));
    at = end;
  }
  pieces.push(body.subarray(at));
  return Buffer.concat(pieces);
}

// One range of an event, as most edits are: without views of its parts.
function replaceRange(body: Buffer, { start, end, text }: BodyEdit): Buffer {
  const size = Buffer.byteLength(text);
  const edited = Buffer.allocUnsafe(body.length - (end - start) + size);
  body.copy(edited, 0, 0, start);
  edited.write(text, start, size, "utf8");
  body.copy(edited, start + size, end);
  return edited;
}

/** The edit that sets a member of an object whose text begins at its brace. */
function setMember(tree: JsonScanner, object: number, name: string, json: string): BodyEdit {
  const member = tree.find(object, name);
  if (member !== -1) return { start: tree.start(member), end: tree.end(member), text: json };
  const start = tree.start(object) + 1;
  const comma = tree.firstChild(object) === -1 ? "" : ",";
  return { start, end: start, text: `${JSON.stringify(name)}:${json}${comma}` };
}

/** The edit that names another model. */
export function setModel(tree: JsonScanner, model: string): BodyEdit {
  return setMember(tree, 0, "model", JSON.stringify(model));
}

/** The edit that asks a provider of OpenAI's shape for the usage at the end of a stream. */
export function requestUsage(tree: JsonScanner): BodyEdit {
  const options = tree.find(0, "stream_options");
  return options === -1 || tree.kind(options) !== JsonKind.Object
    ? setMember(tree, 0, "stream_options", '{"include_usage":true}')
    : setMember(tree, options, "include_usage", "true");
}
