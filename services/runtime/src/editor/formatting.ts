// Formatting: bodies by TypeScript, in a view where each declaration is a function; heads here.
import type { Declaration } from "../language/declaration.ts";
import { LineIndex } from "../language/line-index.ts";
import { createFormatView, findWord } from "../language/view.ts";
import type { Analysis, Document } from "./document.ts";
import type { LineRange, TextEdit } from "./protocol.ts";
import type { TypeServer } from "./type-server.ts";
import { nameForTypes } from "./workspace.ts";

/** Address of the view: beside the file, as the folder must exist. */
const SUFFIX = ".format.ts";

/** A request to format a file, or a range of it. */
interface FormatRequest {
  readonly options: unknown;
  readonly range?: LineRange | undefined;
}

/** Returns the edits that format a service file; none while it cannot be parsed. */
export async function formatService(
  document: Document,
  types: TypeServer,
  { options, range }: FormatRequest,
  signal: AbortSignal,
): Promise<TextEdit[]> {
  const analysis = document.analyze();
  if (analysis.syntaxErrorAt !== undefined) return [];
  const { source, lines, declarations } = analysis;
  const view = createFormatView(source, declarations);
  const viewLines = new LineIndex(view.text);
  const uri = `${nameForTypes(document)}${SUFFIX}`;
  const textDocument = { uri, languageId: "typescript", version: 1, text: view.text };
  types.notify("textDocument/didOpen", { textDocument });
  const method = "textDocument/formatting";
  const answer = types.request<TextEdit[] | null>(
    method,
    { textDocument: { uri }, options },
    signal,
  );
  types.notify("textDocument/didClose", { textDocument: { uri } });
  const bodies = ((await answer) ?? []).flatMap((edit): TextEdit[] => {
    const start = viewLines.toOffset(edit.range.start);
    const end = viewLines.toOffset(edit.range.end);
    const found = view.toSourceRange({ start, end });
    if (found === undefined || !isBetweenHeads(declarations, found)) return [];
    const mapped = { start: lines.toPosition(found.start), end: lines.toPosition(found.end) };
    return [{ range: mapped, newText: edit.newText }];
  });
  const edits = [...declarations.flatMap((one) => formatHead(analysis, one)), ...bodies];
  return range === undefined ? edits : edits.filter((edit) => isInside(edit.range, range));
}

/** False for edits at the joints of the view: white space around a head is that of another text. */
function isBetweenHeads(
  declarations: readonly Declaration[],
  { start, end }: { start: number; end: number },
): boolean {
  return declarations.every((one) => {
    const bodyStart = one.kind === "route" || one.kind === "every" ? one.body.start : one.end;
    return end < one.start || start > bodyStart;
  });
}

function isInside(inner: LineRange, outer: LineRange): boolean {
  const { line, character } = outer.end;
  const isEndInside =
    inner.end.line < line || (inner.end.line === line && inner.end.character <= character);
  return inner.start.line >= outer.start.line && isEndInside;
}

/** One space between the parts of a head; gaps with line breaks or comments stay. */
function formatHead({ source, lines }: Analysis, declaration: Declaration): TextEdit[] {
  const parts = listParts(source, declaration);
  return parts.slice(1).flatMap((part, index): TextEdit[] => {
    const start = parts[index]!.end;
    const gap = source.slice(start, part.start);
    if (gap === " " || !/^[ \t]*$/.test(gap)) return [];
    const range = { start: lines.toPosition(start), end: lines.toPosition(part.start) };
    return [{ range, newText: " " }];
  });
}

function listParts(
  source: string,
  declaration: Declaration,
): readonly { start: number; end: number }[] {
  const { start, isExported } = declaration;
  const words = [
    ...(isExported ? [{ start, end: start + "export".length }] : []),
    findWord(source, declaration),
  ];
  switch (declaration.kind) {
    case "server":
    case "gateway":
      return [...words, declaration.options];
    case "database":
    case "cache":
      return [
        ...words,
        declaration.nameRange,
        ...(declaration.options ? [declaration.options] : []),
      ];
    case "migrations":
      return [...words, declaration.folderRange];
    case "every": {
      const { timingRange, parameters, body } = declaration;
      return [...words, timingRange, ...(parameters ? [parameters] : []), body];
    }
    case "route": {
      const { methodRange, pathRange, parameters, clauses, body } = declaration;
      const values = clauses.flatMap(({ name, nameStart, value }) => [
        { start: nameStart, end: nameStart + name.length },
        value,
      ]);
      return [
        ...words,
        methodRange,
        pathRange,
        ...(parameters ? [parameters] : []),
        ...values,
        body,
      ];
    }
    default:
      return declaration satisfies never;
  }
}
