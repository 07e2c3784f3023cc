// A file of the project as the editor has it: its text, what the parser finds in it, and the view for TypeScript.
import { relative } from "node:path";
import { findDatabases, type DatabaseBinding } from "../language/databases.ts";
import type { Insertion, Declaration } from "../language/declaration.ts";
import type { DroppedCall } from "../language/dropped-calls.ts";
import { LineIndex } from "../language/line-index.ts";
import { explainSyntax, parseService, SyntaxProblem } from "../language/parse.ts";
import { scanService } from "../language/scan.ts";
import type { SourceProblem } from "../language/source-problem.ts";
import type { SqlTemplate } from "../language/sql-template.ts";
import { verifyDeclarations } from "../language/verify.ts";
import { verifyRules } from "../language/verify-rules.ts";
import { createView, type View } from "../language/view.ts";
import type { LineRange, TextEdit } from "./protocol.ts";

/** Files in the language. */
export const SERVICE_FILE = /\.service\.[tj]s$/;
/** Other files that may have statements, or drop promises. */
const SCRIPT_FILE = /\.[mc]?ts$/;

/** A text and the results of reading it. */
export interface Analysis {
  readonly source: string;
  readonly lines: LineIndex;
  readonly view: View;
  readonly viewLines: LineIndex;
  readonly declarations: readonly Declaration[];
  readonly databases: readonly DatabaseBinding[];
  readonly statements: readonly SqlTemplate[];
  readonly droppedCalls: readonly DroppedCall[];
  /** Problems of syntax and of declarations. */
  readonly problems: readonly SourceProblem[];
  /** Offset of the syntax error, where TypeScript's own message is not shown. */
  readonly syntaxErrorAt: number | undefined;
}

/** Options of a document. */
export interface DocumentOptions {
  readonly uri: string;
  /** Absolute; undefined if the document is not a file. */
  readonly path: string | undefined;
  readonly languageId: string;
  readonly text: string;
  /** The editor's number of this text. */
  readonly version?: number;
}

type Parsed = Pick<
  Analysis,
  "declarations" | "databases" | "statements" | "droppedCalls" | "problems" | "syntaxErrorAt"
> & { readonly closers: readonly Insertion[] };

/** A document; it changes while the editor has it open. */
export class Document {
  readonly uri: string;
  readonly path: string | undefined;
  readonly languageId: string;
  /** True while the editor has it open; the text on disk is that of others. */
  isOpen = false;
  #version: number | undefined;
  #text: string;
  #lines: LineIndex | undefined;
  #parsed: Parsed | undefined;
  #analysis: Analysis | undefined;
  #rowTypes: ReadonlyMap<string, string> = new Map();

  constructor({ uri, path, languageId, text, version }: DocumentOptions) {
    this.#version = version;
    this.uri = uri;
    this.path = path;
    this.languageId = languageId;
    this.#text = text;
  }

  get text(): string {
    return this.#text;
  }

  /** The editor's number of the text. */
  get version(): number | undefined {
    return this.#version;
  }

  /** True for files in the language. */
  get isService(): boolean {
    return this.path !== undefined && SERVICE_FILE.test(this.path);
  }

  /** Replaces the text. */
  replace(text: string): void {
    this.#text = text;
    this.#lines = undefined;
    this.#parsed = undefined;
    this.#analysis = undefined;
  }

  /** Applies changes of the editor, each to the result of the one before; one without a range is the whole text. */
  change(
    edits: readonly { readonly range?: LineRange | null; readonly text: string }[],
    version: number,
  ): void {
    this.#version = version;
    for (const { range, text } of edits) {
      if (range === undefined || range === null) this.replace(text);
      else {
        this.#lines ??= new LineIndex(this.#text);
        const start = this.#lines.toOffset(range.start);
        const end = Math.max(start, this.#lines.toOffset(range.end));
        this.replace(this.#text.slice(0, start) + text + this.#text.slice(end));
      }
    }
  }

  /**
   * Sets the types of rows by {@link keyOfStatement}. Those of unchanged statements stay valid while the file is edited.
   * Returns true if the view changes.
   */
  setRowTypes(rowTypes: ReadonlyMap<string, string>): boolean {
    const before = this.#rowTypes;
    const isEqual =
      before.size === rowTypes.size &&
      Array.from(rowTypes).every(([key, type]) => before.get(key) === type);
    if (isEqual) return false;
    this.#rowTypes = rowTypes;
    this.#analysis = undefined;
    return true;
  }

  /** The types of rows by {@link keyOfStatement}. */
  get rowTypes(): ReadonlyMap<string, string> {
    return this.#rowTypes;
  }

  /** Reads the text, if it has changed since the last call. */
  analyze(): Analysis {
    if (this.#analysis !== undefined) return this.#analysis;
    const source = this.#text;
    this.#parsed ??= this.#parse();
    const { declarations, statements, closers } = this.#parsed;
    const types = statements.flatMap((statement): Insertion[] => {
      const type = this.#rowTypes.get(keyOfStatement(statement));
      return type === undefined ? [] : [{ at: statement.typeAt, text: type }];
    });
    const view = createView(source, declarations, [...closers, ...types]);
    this.#lines ??= new LineIndex(source);
    const lines = this.#lines;
    const viewLines = view.text === source ? lines : new LineIndex(view.text);
    this.#analysis = { ...this.#parsed, source, lines, view, viewLines };
    return this.#analysis;
  }

  #parse(): Parsed {
    const source = this.#text;
    const path = this.path === undefined ? this.uri : relative(process.cwd(), this.path);
    const none = { declarations: [], databases: [], statements: [], droppedCalls: [] };
    const empty = { ...none, problems: [], closers: [] };
    const isScript = this.path !== undefined && SCRIPT_FILE.test(this.path);
    if (!this.isService && !isScript) return { ...empty, syntaxErrorAt: undefined };
    try {
      const parsed = parseService(source);
      // In a plain file the words are names.
      if (!this.isService && parsed.declarations.length > 0) {
        return { ...empty, syntaxErrorAt: undefined };
      }
      const { declarations, rules } = parsed;
      const problems = [
        ...verifyDeclarations({ path, source, declarations }),
        ...verifyRules({ path, source, rules }),
      ];
      return { ...parsed, problems, closers: [], syntaxErrorAt: undefined };
    } catch (error) {
      if (!(error instanceof SyntaxProblem)) throw error;
      // TypeScript reports the errors of its own files.
      if (!this.isService) return { ...empty, syntaxErrorAt: undefined };
      const scanned = scanService(source);
      const databases = findDatabases(source, scanned.declarations, []);
      return { ...empty, ...scanned, databases, ...describeSyntaxProblem(error, source, path) };
    }
  }
}

function describeSyntaxProblem(
  error: SyntaxProblem,
  source: string,
  path: string,
): Pick<Parsed, "problems" | "syntaxErrorAt"> {
  const { message, offset } = explainSyntax(error, source);
  const { line, character } = new LineIndex(source).toPosition(offset);
  const problem = { path, line: line + 1, column: character + 1, message };
  return { problems: [{ ...problem, severity: "error" }], syntaxErrorAt: offset };
}

/** Statements with the same key have the same rows. */
export function keyOfStatement({ database, text, isTyped, method }: SqlTemplate): string {
  return isTyped || method === "run" ? "" : `${database}\0${text}`;
}

/** The range of a view as a range of lines of the source; undefined if it is not the author's text. */
export function toSourceRange(
  { view, viewLines, lines }: Analysis,
  range: LineRange,
): LineRange | undefined {
  const start = viewLines.toOffset(range.start);
  const end = viewLines.toOffset(range.end);
  const found = view.toSourceRange({ start, end });
  if (found === undefined) return undefined;
  return { start: lines.toPosition(found.start), end: lines.toPosition(found.end) };
}

/** The nearest range of lines of the source. */
export function toNearestRange({ view, viewLines, lines }: Analysis, range: LineRange): LineRange {
  const start = viewLines.toOffset(range.start);
  const end = viewLines.toOffset(range.end);
  const found = view.toNearestRange({ start, end });
  return { start: lines.toPosition(found.start), end: lines.toPosition(found.end) };
}

/** The range of lines of the view; undefined if an end is not in it. */
export function toViewRange(
  { view, viewLines, lines }: Analysis,
  range: LineRange,
): LineRange | undefined {
  const start = view.toView(lines.toOffset(range.start));
  const end = view.toView(lines.toOffset(range.end), "before");
  if (start === undefined || end === undefined || end < start) return undefined;
  return { start: viewLines.toPosition(start), end: viewLines.toPosition(end) };
}

/** The edits that lie in the author's text. */
export function toSourceEdits(analysis: Analysis, edits: readonly TextEdit[]): readonly TextEdit[] {
  return edits.flatMap((edit) => {
    const range = toSourceRange(analysis, edit.range);
    return range === undefined ? [] : [{ ...edit, range }];
  });
}
