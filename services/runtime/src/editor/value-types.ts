// Values of a wrong type that TypeScript accepts: promises that nothing awaits, and strings for integer columns. Their types
// are those that TypeScript describes at a name.
import type { IntegerValue } from "../language/check-statements.ts";
import { returnsPromise, type DroppedCall } from "../language/dropped-calls.ts";
import type { Analysis, Document } from "./document.ts";
import type { Hover } from "./protocol.ts";
import type { TypeServer } from "./type-server.ts";
import { nameForTypes } from "./workspace.ts";

/** Names of one file and kind that are asked about; files with more are generated. */
const NAMES_MAX = 2_000;
/** A description of a name whose type is a string, which may be missing. */
const STRING = /^\s*(?:```\w*\n)?[^\n]*[^\n]: string(?: \| (?:undefined|null))*(?=\n|$)/;
/** Its promise is never rejected: a failed start ends the process. */
const START = /\bServiceServer\.start\(/;

/** A message about a value. */
export interface ValueProblem {
  readonly offset: number;
  readonly severity: "error" | "warning";
  readonly message: string;
}

/** Finds the calls of a document that return a promise and whose result is dropped. */
export async function findPromises(
  document: Document,
  { droppedCalls }: Analysis,
  types: TypeServer,
  signal?: AbortSignal,
): Promise<ValueProblem[]> {
  const found = droppedCalls.slice(0, NAMES_MAX).map(async (call): Promise<ValueProblem[]> => {
    if (call.nameAt === undefined) return [describe(call)];
    const text = await readType(document, call.nameAt, types, signal);
    return returnsPromise(text) && !START.test(text) ? [describe(call)] : [];
  });
  return (await Promise.all(found)).flat();
}

/** Finds the names of strings whose values are stored in integer columns. A number as text is stored as a number. */
export async function findStrings(
  document: Document,
  values: readonly IntegerValue[],
  types: TypeServer,
  signal?: AbortSignal,
): Promise<ValueProblem[]> {
  const found = values.slice(0, NAMES_MAX).map(async ({ nameAt, column }) => {
    const text = await readType(document, nameAt, types, signal);
    if (!STRING.test(text)) return [];
    const message = `this is a string, and the column ${column} has the type integer: text that is not a number is stored as text; write Number(…) and check it`;
    return [{ offset: nameAt, severity: "warning" as const, message }];
  });
  return (await Promise.all(found)).flat();
}

/** The description of a name with its type; "" if there is none. */
async function readType(
  document: Document,
  offset: number,
  types: TypeServer,
  signal: AbortSignal | undefined,
): Promise<string> {
  const { view, viewLines } = document.analyze();
  const at = view.toView(offset);
  if (at === undefined) return "";
  const textDocument = { uri: nameForTypes(document) };
  const params = { textDocument, position: viewLines.toPosition(at) };
  const hover = await types.request<Hover | null>("textDocument/hover", params, signal);
  return readText(hover?.contents);
}

function describe({ start, name, isVoid }: DroppedCall): ValueProblem {
  const consequence = "its error would end the process";
  const message = isVoid
    ? `the promise of ${name} is dropped by void: ${consequence}; handle it with .catch()`
    : `the promise of ${name} is not awaited: ${consequence}; write await, or handle it with .catch()`;
  return { offset: start, severity: isVoid ? "warning" : "error", message };
}

function readText(contents: unknown): string {
  if (typeof contents === "string") return contents;
  if (Array.isArray(contents)) return contents.map(readText).join("\n");
  const { value } = (contents ?? {}) as { value?: unknown };
  return typeof value === "string" ? value : "";
}
