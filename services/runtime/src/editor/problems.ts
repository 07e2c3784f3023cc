// All messages about a document: syntax and declarations, statements, and types.
import { relative } from "node:path";
import { suggestName } from "@platform/kernel/config";
import { OPTION_NAMES } from "@platform/service/host";
import { checkStatements, type IntegerValue } from "../language/check-statements.ts";
import { describeUnclosed, findUnclosed } from "../language/scan.ts";
import { SchemaCache } from "../language/schema.ts";
import type { SourceProblem } from "../language/source-problem.ts";
import { isSyntaxCode, mapDiagnostics } from "./answers.ts";
import { keyOfStatement, type Analysis, type Document } from "./document.ts";
import type { Diagnostic, LineRange } from "./protocol.ts";
import { findPromises, findStrings } from "./value-types.ts";
import type { TypeServer } from "./type-server.ts";
import { isScript, nameForTypes, type Workspace } from "./workspace.ts";

/** Source of our own messages, beside TypeScript's `ts`. */
const SOURCE = "platform";
/** TS2353: Object literal may only specify known properties. */
const UNKNOWN_PROPERTY = 2353;
/** Declarations by the names of their options' types, without the ending. */
const OPTION_TYPES: Readonly<Record<string, keyof typeof OPTION_NAMES>> = {
  Server: "server",
  Database: "database",
  Cache: "cache",
  Schedule: "every",
};
const WORD = /[\w$@./:*-]+/y;

/** The statements of one text. */
interface StatementResult {
  readonly source: string;
  readonly integers: readonly IntegerValue[];
  readonly problems: readonly { readonly offset: number; readonly problem: SourceProblem }[];
}

/** Messages about the documents of a workspace. */
export class Problems {
  readonly #workspace: Workspace;
  readonly #types: TypeServer | undefined;
  readonly #isStatementsOnly: boolean;
  readonly #statements = new WeakMap<Document, StatementResult>();
  /** Schemas of the databases. */
  readonly schemas = new SchemaCache();

  /** `isStatementsOnly` leaves out syntax and declarations, which the editor's own TypeScript reports. */
  constructor(workspace: Workspace, types: TypeServer | undefined, isStatementsOnly = false) {
    this.#workspace = workspace;
    this.#types = types;
    this.#isStatementsOnly = isStatementsOnly;
  }

  /** Checks the statements of a document. Returns true if its messages or its view change. */
  checkStatements(document: Document): boolean {
    const { path } = document;
    const analysis = document.analyze();
    // A file that cannot be parsed keeps the messages about the rest of its text.
    if (path === undefined || analysis.syntaxErrorAt !== undefined) return false;
    const { source, databases, statements, lines } = analysis;
    const before = this.#statements.get(document);
    if (before === undefined && databases.length === 0) return false;
    const name = relative(process.cwd(), path);
    const databaseUrl = process.env["DATABASE_URL"];
    const program = { path: name, source, databases, statements, databaseUrl };
    const { problems, rowTypes, integers } = checkStatements(program, this.schemas);
    const located = problems.map((problem) => ({
      offset: lines.toOffset({ line: problem.line - 1, character: problem.column - 1 }),
      problem,
    }));
    this.#statements.set(document, { source, problems: located, integers });
    const typeAt = new Map(rowTypes.map(({ at, text }) => [at, text]));
    const types = statements.flatMap((statement): [string, string][] => {
      const type = typeAt.get(statement.typeAt);
      return type === undefined ? [] : [[keyOfStatement(statement), type]];
    });
    const isChanged = document.setRowTypes(new Map(types));
    if (isChanged) this.#workspace.touch();
    return isChanged || describe(before) !== describe({ source, problems: located, integers });
  }

  /** Our own messages about a document. */
  listOwn(document: Document): Diagnostic[] {
    const analysis = document.analyze();
    const { problems, lines } = analysis;
    const shown = this.#isStatementsOnly ? [] : problems;
    const own = shown.map((problem) => {
      const { line, column } = problem;
      const offset = lines.toOffset({ line: line - 1, character: column - 1 });
      return formatDiagnostic(analysis, offset, problem);
    });
    const statements = this.#locateStatements(document, analysis.source).map(
      ({ offset, problem }) => formatDiagnostic(analysis, offset, problem),
    );
    return [...own, ...statements];
  }

  /** All messages about a document. */
  async list(document: Document, signal?: AbortSignal): Promise<Diagnostic[]> {
    const own = this.listOwn(document);
    const types = this.#types;
    if (types === undefined || !isScript(document)) return own;
    this.#workspace.flush(types);
    const snapshot = this.#workspace.takeSnapshot();
    const analysis = document.analyze();
    // Together: later edits must not be between them.
    const known = this.#statements.get(document);
    const integers = known?.source === analysis.source ? known.integers : [];
    const [report, promises, strings] = await Promise.all([
      types.request<{ items?: readonly Diagnostic[] }>(
        "textDocument/diagnostic",
        { textDocument: { uri: nameForTypes(document) } },
        signal,
      ),
      findPromises(document, analysis, types, signal),
      findStrings(document, integers, types, signal),
    ]);
    const dropped = [...promises, ...strings].map(({ offset, ...one }) =>
      formatDiagnostic(analysis, offset, one),
    );
    const found = mapDiagnostics(snapshot, analysis, report.items ?? []).map(explainOption);
    return [...own, ...dropped, ...explainUnclosed(document, analysis, found)];
  }

  /** The messages of the last check; while the text is edited, those outside the edit move with their text. */
  #locateStatements(document: Document, source: string): StatementResult["problems"] {
    const known = this.#statements.get(document);
    if (known === undefined) return [];
    if (known.source === source) return known.problems;
    const { prefix, suffix } = findCommonEnds(known.source, source);
    const moved = source.length - known.source.length;
    return known.problems.flatMap(({ offset, problem }) => {
      if (offset + lengthOfWord(known.source, offset) <= prefix) return [{ offset, problem }];
      if (offset < known.source.length - suffix) return [];
      return [{ offset: offset + moved, problem }];
    });
  }
}

/** TypeScript names no similar option if the name is short. */
function explainOption(diagnostic: Diagnostic): Diagnostic {
  const { code, message } = diagnostic;
  if (code !== UNKNOWN_PROPERTY) return diagnostic;
  const [, name = "", type = ""] =
    /'(\w+)' does not exist in type '(\w+)Options/.exec(message) ?? [];
  const known = OPTION_NAMES[OPTION_TYPES[type] ?? "every"];
  return OPTION_TYPES[type] === undefined
    ? diagnostic
    : { ...diagnostic, message: `unknown option ${name}${suggestName(name, known)}` };
}

/** In a plain file, TypeScript reports a missing bracket where the next statement confuses it. */
function explainUnclosed(
  document: Document,
  { source, lines }: Analysis,
  diagnostics: readonly Diagnostic[],
): readonly Diagnostic[] {
  if (document.isService || !diagnostics.some(({ code }) => isSyntaxCode(code))) {
    return diagnostics;
  }
  const unclosed = findUnclosed(source);
  if (unclosed === undefined) return diagnostics;
  const start = lines.toPosition(unclosed.start);
  const end = lines.toPosition(unclosed.start + lengthOfWord(source, unclosed.start));
  const message = describeUnclosed(unclosed);
  const own: Diagnostic = { range: { start, end }, severity: 1, source: SOURCE, message };
  return [own, ...diagnostics.filter(({ code }) => !isSyntaxCode(code))];
}

function describe(result: StatementResult | undefined): string {
  return JSON.stringify((result?.problems ?? []).map(({ problem }) => problem));
}

function findCommonEnds(before: string, after: string): { prefix: number; suffix: number } {
  const max = Math.min(before.length, after.length);
  let prefix = 0;
  while (prefix < max && before[prefix] === after[prefix]) prefix++;
  let suffix = 0;
  while (suffix < max - prefix && before.at(-1 - suffix) === after.at(-1 - suffix)) suffix++;
  return { prefix, suffix };
}

function formatDiagnostic(
  { source, lines }: Analysis,
  offset: number,
  { severity, message }: Pick<SourceProblem, "severity" | "message">,
): Diagnostic {
  const length = lengthOfWord(source, offset);
  const range: LineRange = {
    start: lines.toPosition(offset),
    end: lines.toPosition(Math.min(source.length, offset + length)),
  };
  return { range, severity: severity === "error" ? 1 : 2, source: SOURCE, message };
}

function lengthOfWord(source: string, offset: number): number {
  WORD.lastIndex = offset;
  return WORD.exec(source)?.[0].length ?? 1;
}

/** True for our own messages. */
export function isOwnDiagnostic({ source }: Diagnostic): boolean {
  return source === SOURCE;
}
