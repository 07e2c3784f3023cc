// Answers of TypeScript about views, as answers about the author's files.
import { toNearestRange, toSourceEdits, toSourceRange, type Analysis } from "./document.ts";
import type {
  CompletionItem,
  CompletionList,
  Diagnostic,
  DocumentChange,
  DocumentSymbol,
  EditRange,
  Hover,
  LineRange,
  Location,
  TextEdit,
  WorkspaceEdit,
} from "./protocol.ts";

/** The files of the moment of a request; answers are about them, whatever was typed since. */
export interface Snapshot {
  /** The analysis of a file; undefined for files that TypeScript reads itself. */
  find(uri: string): Analysis | undefined;
  /** The same by path. */
  findPath(path: string): Analysis | undefined;
  /** The address under which the editor has a file. */
  nameForEditor(uri: string): string;
}

/** Positions of messages of TypeScript about syntax are not shown near the message of the parser. */
const SYNTAX_CODES = { min: 1_000, max: 1_999 };
const HINT = 4;

/** Maps a location; undefined if it is not the author's text. */
export function mapLocation(snapshot: Snapshot, location: Location): Location | undefined {
  const analysis = snapshot.find(location.uri);
  const range = analysis === undefined ? location.range : toSourceRange(analysis, location.range);
  if (range === undefined) return undefined;
  return { ...location, uri: snapshot.nameForEditor(location.uri), range };
}

interface LocationLink {
  readonly originSelectionRange?: LineRange;
  readonly targetUri: string;
  readonly targetRange: LineRange;
  readonly targetSelectionRange: LineRange;
}

/** Maps a location, several, or links. */
export function mapLocations(
  snapshot: Snapshot,
  analysis: Analysis | undefined,
  answer: Location | readonly (Location | LocationLink)[] | null,
): unknown {
  if (answer === null) return null;
  if (!Array.isArray(answer)) return mapLocation(snapshot, answer as Location) ?? null;
  return (answer as readonly (Location | LocationLink)[]).flatMap((one) => {
    if ("uri" in one) return mapLocation(snapshot, one) ?? [];
    const { originSelectionRange: origin, targetUri, targetRange, targetSelectionRange } = one;
    const target = snapshot.find(targetUri);
    const selection = target ? toSourceRange(target, targetSelectionRange) : targetSelectionRange;
    if (selection === undefined) return [];
    const range = target ? (toSourceRange(target, targetRange) ?? selection) : targetRange;
    return {
      originSelectionRange: origin && analysis ? toSourceRange(analysis, origin) : origin,
      targetUri: snapshot.nameForEditor(targetUri),
      targetRange: contains(range, selection) ? range : selection,
      targetSelectionRange: selection,
    };
  });
}

function contains(outer: LineRange, inner: LineRange): boolean {
  return isBefore(outer.start, inner.start) && isBefore(inner.end, outer.end);
}

function isBefore(a: LineRange["start"], b: LineRange["start"]): boolean {
  return a.line < b.line || (a.line === b.line && a.character <= b.character);
}

/** Maps a hover; its range is left out if it is not the author's text. */
export function mapHover(analysis: Analysis, hover: Hover | null): Hover | null {
  if (hover === null) return null;
  const { range, ...rest } = hover;
  const mapped = range === undefined ? undefined : toSourceRange(analysis, range);
  return mapped === undefined ? rest : { ...rest, range: mapped };
}

/** Maps suggestions; those that would replace text that is not the author's are left out. */
export function mapCompletions(
  analysis: Analysis,
  answer: CompletionList | readonly CompletionItem[] | null,
): CompletionList {
  const list = toList(answer);
  const { editRange, ...defaults } = list.itemDefaults ?? {};
  const range = editRange === undefined ? undefined : mapEditRange(analysis, editRange);
  return {
    ...list,
    ...(list.itemDefaults && {
      itemDefaults: range === undefined ? defaults : { ...defaults, editRange: range },
    }),
    items: list.items.flatMap((item) => mapCompletion(analysis, item) ?? []),
  };
}

function toList(answer: CompletionList | readonly CompletionItem[] | null): CompletionList {
  if (answer === null) return { isIncomplete: false, items: [] };
  return "items" in answer ? answer : { isIncomplete: false, items: answer };
}

/** Maps a suggestion; undefined if it would replace text that is not the author's. */
export function mapCompletion(
  analysis: Analysis,
  item: CompletionItem,
): CompletionItem | undefined {
  const { textEdit, additionalTextEdits, ...rest } = item;
  const added = additionalTextEdits && toSourceEdits(analysis, additionalTextEdits);
  const more = added === undefined ? {} : { additionalTextEdits: added };
  if (textEdit === undefined) return { ...rest, ...more };
  const { newText, range, insert, replace } = textEdit;
  const mapped = mapEditRange(analysis, range ?? { insert: insert!, replace: replace! });
  if (mapped === undefined) return undefined;
  const edit = "start" in mapped ? { newText, range: mapped } : { newText, ...mapped };
  return { ...rest, ...more, textEdit: edit };
}

function mapEditRange(analysis: Analysis, range: EditRange): EditRange | undefined {
  if ("start" in range) return toSourceRange(analysis, range);
  const insert = toSourceRange(analysis, range.insert);
  const replace = toSourceRange(analysis, range.replace);
  return insert === undefined || replace === undefined ? undefined : { insert, replace };
}

/** Maps the edits of files; undefined if one lies in text that is not the author's and `isWhole`. */
export function mapWorkspaceEdit(
  snapshot: Snapshot,
  edit: WorkspaceEdit,
  isWhole: boolean,
): WorkspaceEdit | undefined {
  let isComplete = true;
  const map = (uri: string, edits: readonly TextEdit[]): readonly TextEdit[] => {
    const analysis = snapshot.find(uri);
    const mapped = analysis === undefined ? edits : toSourceEdits(analysis, edits);
    if (mapped.length < edits.length) isComplete = false;
    return mapped;
  };
  const { changes, documentChanges } = edit;
  const mappedChanges =
    changes &&
    Object.fromEntries(
      Object.entries(changes).map(([uri, edits]) => [snapshot.nameForEditor(uri), map(uri, edits)]),
    );
  const mappedDocuments = documentChanges?.map((change): DocumentChange => {
    const { textDocument, edits } = change;
    if (textDocument === undefined || edits === undefined) return change;
    const uri = snapshot.nameForEditor(textDocument.uri);
    return { textDocument: { uri, version: null }, edits: map(textDocument.uri, edits) };
  });
  if (isWhole && !isComplete) return undefined;
  return {
    ...(mappedChanges && { changes: mappedChanges }),
    ...(mappedDocuments && { documentChanges: mappedDocuments }),
  };
}

/** Addresses of the files that edits change. */
export function listEditedFiles({ changes = {}, documentChanges = [] }: WorkspaceEdit): string[] {
  const uris = documentChanges.flatMap(({ textDocument }) => textDocument?.uri ?? []);
  return [...Object.keys(changes), ...uris];
}

/** Maps messages about a file. Errors about inserted text are shown at its declaration, hints are not shown. */
export function mapDiagnostics(
  snapshot: Snapshot,
  analysis: Analysis,
  diagnostics: readonly Diagnostic[],
): Diagnostic[] {
  const seen = new Set<string>();
  return diagnostics.flatMap((diagnostic): Diagnostic[] => {
    const { severity = 1, code, relatedInformation, message } = diagnostic;
    const exact = toSourceRange(analysis, diagnostic.range);
    if (severity >= HINT && exact === undefined) return [];
    if (isSyntaxCode(code) && isReplaced(analysis, diagnostic.range)) return [];
    const range = exact ?? toNearestRange(analysis, diagnostic.range);
    const key = JSON.stringify([range, code, message]);
    if (seen.has(key)) return [];
    seen.add(key);
    const related = relatedInformation?.flatMap(({ location, message: text }) => {
      const mapped = mapLocation(snapshot, location);
      return mapped === undefined ? [] : { location: mapped, message: text };
    });
    return [{ ...diagnostic, range, ...(related && { relatedInformation: related }) }];
  });
}

/** True for codes of TypeScript about syntax. */
export function isSyntaxCode(code: number | string | undefined): boolean {
  return typeof code === "number" && code >= SYNTAX_CODES.min && code <= SYNTAX_CODES.max;
}

/** True on the line of the parser's message, or if only white space is between them. */
function isReplaced(analysis: Analysis, range: LineRange): boolean {
  const { syntaxErrorAt, lines, source } = analysis;
  if (syntaxErrorAt === undefined) return false;
  const { start } = toNearestRange(analysis, range);
  const at = lines.toOffset(start);
  if (lines.toPosition(syntaxErrorAt).line === start.line) return true;
  const between = source.slice(Math.min(at, syntaxErrorAt), Math.max(at, syntaxErrorAt));
  return between.trim() === "";
}

/** Maps symbols of a file; those that are not the author's are replaced by their children. */
export function mapSymbols(
  analysis: Analysis,
  symbols: readonly DocumentSymbol[],
): DocumentSymbol[] {
  return symbols.flatMap((symbol): DocumentSymbol[] => {
    const children = mapSymbols(analysis, symbol.children ?? []);
    const range = toSourceRange(analysis, symbol.range);
    const selectionRange = toSourceRange(analysis, symbol.selectionRange);
    if (range === undefined || selectionRange === undefined) return children;
    return [{ ...symbol, range, selectionRange, children }];
  });
}

interface CodeAction {
  readonly edit?: WorkspaceEdit;
  readonly diagnostics?: readonly Diagnostic[];
}

/** Maps quick fixes; those that would change other text than the author's are left out. */
export function mapCodeActions(
  snapshot: Snapshot,
  analysis: Analysis | undefined,
  actions: readonly CodeAction[] | null,
): CodeAction[] {
  return (actions ?? []).flatMap((action): CodeAction[] => {
    const { edit, diagnostics } = action;
    const mapped = edit && mapWorkspaceEdit(snapshot, edit, true);
    if (edit !== undefined && mapped === undefined) return [];
    const shown =
      analysis === undefined || diagnostics === undefined
        ? diagnostics
        : mapDiagnostics(snapshot, analysis, diagnostics);
    return [{ ...action, ...(mapped && { edit: mapped }), ...(shown && { diagnostics: shown }) }];
  });
}

interface SelectionRange {
  readonly range: LineRange;
  readonly parent?: SelectionRange;
}

/** Maps nested ranges; those that are not the author's text are left out. */
export function mapSelection(
  analysis: Analysis,
  selection: SelectionRange,
): SelectionRange | undefined {
  const parent = selection.parent && mapSelection(analysis, selection.parent);
  const range = toSourceRange(analysis, selection.range);
  if (range === undefined || (parent && !contains(parent.range, range))) return parent;
  return { range, ...(parent && { parent }) };
}

interface FoldingRange {
  readonly startLine: number;
  readonly startCharacter?: number;
  readonly endLine: number;
  readonly endCharacter?: number;
}

/** Maps ranges that can be folded. */
export function mapFolding(analysis: Analysis, ranges: readonly FoldingRange[]): FoldingRange[] {
  const { view, viewLines, lines } = analysis;
  return ranges.flatMap((range): FoldingRange[] => {
    const { startLine, startCharacter = 0, endLine, endCharacter = Infinity } = range;
    const start = viewLines.toOffset({ line: startLine, character: startCharacter });
    const end = viewLines.toOffset({ line: endLine, character: endCharacter });
    const found = view.toNearestRange({ start, end });
    const from = lines.toPosition(found.start);
    const to = lines.toPosition(found.end);
    if (to.line <= from.line) return [];
    const characters =
      range.startCharacter === undefined
        ? {}
        : { startCharacter: from.character, endCharacter: to.character };
    return [{ ...range, startLine: from.line, endLine: to.line, ...characters }];
  });
}

interface InlayHint {
  readonly position: LineRange["start"];
  readonly label: string | readonly { readonly location?: Location }[];
  readonly textEdits?: readonly TextEdit[];
}

/** Maps hints; those in text that is not the author's are left out. */
export function mapInlayHints(
  snapshot: Snapshot,
  analysis: Analysis,
  hints: readonly InlayHint[],
): InlayHint[] {
  return hints.flatMap((hint): InlayHint[] => {
    const { position, label, textEdits } = hint;
    const range = toSourceRange(analysis, { start: position, end: position });
    if (range === undefined) return [];
    const parts =
      typeof label === "string" ? label : label.map((part) => mapLabelPart(snapshot, part));
    const edits = textEdits && { textEdits: toSourceEdits(analysis, textEdits) };
    return [{ ...hint, position: range.start, label: parts, ...edits }];
  });
}

function mapLabelPart(
  snapshot: Snapshot,
  part: { readonly location?: Location },
): { readonly location?: Location } {
  const { location, ...rest } = part;
  const mapped = location && mapLocation(snapshot, location);
  return mapped === undefined ? rest : { ...rest, location: mapped };
}
