// The parser: TypeScript, and declarations at the start of top-level statements.
import { tsPlugin } from "@sveltejs/acorn-typescript";
import { Parser, tokTypes, type Node, type TokenType } from "acorn";
import { findDatabases, type BindingNode, type DatabaseBinding } from "./databases.ts";
import { findDroppedCalls, type DroppedCall, type StatementNode } from "./dropped-calls.ts";
import { describeUnclosed, findUnclosed } from "./scan.ts";
import { findCalledRules, readRules, type RulesText } from "./rules.ts";
import { findSqlTemplates, type Candidate, type SqlTemplate } from "./sql-template.ts";
import {
  CLAUSE_NAMES,
  WORDS,
  type Clause,
  type ClauseName,
  type Declaration,
  type Range,
  type Word,
} from "./declaration.ts";

/** A syntax error at an offset. */
export class SyntaxProblem extends Error {
  readonly offset: number;

  constructor(message: string, offset: number) {
    super(message);
    this.name = "SyntaxProblem";
    this.offset = offset;
  }
}

/** The parts of acorn's parser that plugins use (https://github.com/acornjs/acorn/tree/master/acorn#plugin-developments). */
interface ParserParts {
  readonly input: string;
  type: TokenType;
  value: unknown;
  start: number;
  end: number;
  pos: number;
  lastTokEnd: number;
  yieldPos: number;
  awaitPos: number;
  awaitIdentPos: number;
  next(): void;
  nextToken(): void;
  startNode(): Node;
  finishNode(node: Node, type: string): Node;
  parseExprAtom(): Node;
  parseExprSubscripts(): Node;
  parseFunctionParams(node: Node): void;
  parseFunctionBody(node: Node, isArrow: boolean, isMethod: boolean, forInit: boolean): void;
  enterScope(flags: number): void;
  declareName(name: string, kind: number, pos: number): void;
  parseStatement(context: unknown, topLevel?: boolean, exports?: unknown): Node;
  parse(): Node;
}

/** Acorn's scope flags of an async function, and its kind of `const` bindings. */
const SCOPE_ASYNC_FUNCTION = 2 | 4;
const BIND_LEXICAL = 2;
const NEAR_MAX = 2;
const UNNAMED: readonly Word[] = ["server", "gateway", "every", "migrations"];
const HEADS: Readonly<Record<Word, string>> = {
  server: "server { port: 3000 }",
  gateway: "gateway { rate_limit_rpm: 60 }",
  database: 'database notes { migrations: "./migrations" }',
  migrations: 'migrations "./migrations"',
  cache: "cache hot { ttl: 60 }",
  route: "export route GET /notes/:id (req) { … }",
  every: "every 5m { … }",
};

const TypeScriptParser = Parser.extend(tsPlugin()) as unknown as new (
  options: object,
  input: string,
) => ParserParts;

/** A parsed file. */
export interface ParsedService {
  readonly declarations: readonly Declaration[];
  readonly databases: readonly DatabaseBinding[];
  readonly statements: readonly SqlTemplate[];
  readonly droppedCalls: readonly DroppedCall[];
  readonly rules: readonly RulesText[];
}

/** Parses a file. Throws a SyntaxProblem at the first syntax error. */
export function parseService(source: string): ParsedService {
  const { body: _, ...parsed } = parseFile(source);
  return parsed;
}

/** Parses a file like {@link parseService}; `body` are its statements, declarations among them. */
export function parseFile(source: string): ParsedService & { body: readonly BindingNode[] } {
  const options = { ecmaVersion: "latest", sourceType: "module", locations: true };
  const parser = new ServiceParser(options, source);
  let program: Node & { readonly body?: readonly BindingNode[] };
  try {
    program = parser.parse();
  } catch (error) {
    if (error instanceof SyntaxProblem) throw error;
    const { pos, message } = error as { pos?: number; message: string };
    if (pos === undefined) throw error;
    throw new SyntaxProblem(describe(message), pos);
  }
  const { declarations, candidates, expressions, rules } = parser;
  const bindings = [...parser.bindings.values()];
  const databases = findDatabases(source, declarations, bindings);
  const statements = findSqlTemplates(databases, [...candidates.values()]);
  const droppedCalls = findDroppedCalls(source, [...expressions.values()], bindings);
  const called = findCalledRules([...candidates.values()], bindings);
  const found = { databases, statements, droppedCalls, rules: [...rules, ...called] };
  return { declarations, ...found, body: program.body ?? [] };
}

/** The message of acorn without its position. */
function describe(message: string): string {
  const text = message.replace(/ \(\d+:\d+\)$/, "");
  return text[0]!.toLowerCase() + text.slice(1);
}

/** A word at the start of a line and a name, where a declaration may have been meant. */
const UNKNOWN_DECLARATION = /(?:^|\n)(?:export )?([A-Za-z_$][\w$]*) +$/;

/** A syntax error at its cause, with a message where the position alone does not say what is wrong. */
export function explainSyntax(problem: SyntaxProblem, source: string): SyntaxProblem {
  const unclosed = findUnclosed(source);
  if (unclosed !== undefined && unclosed.start < problem.offset) {
    return new SyntaxProblem(describeUnclosed(unclosed), unclosed.start);
  }
  return new SyntaxProblem(explainMessage(problem, source), problem.offset);
}

function explainMessage({ message, offset }: SyntaxProblem, source: string): string {
  if (message !== "unexpected token") return message;
  if (source.slice(offset).trim() === "") {
    return "unexpected end of the file: a closing }, ) or ] is missing";
  }
  const [, word] = UNKNOWN_DECLARATION.exec(source.slice(0, offset)) ?? [];
  if (word === undefined || !/^[A-Za-z_${]/.test(source.slice(offset))) return message;
  return `unexpected token: ${word} is not a declaration; those are server, gateway, database, cache, migrations, export route and every`;
}

class ServiceParser extends TypeScriptParser {
  readonly declarations: Declaration[] = [];
  /** Rules of declarations and clauses. */
  readonly rules: RulesText[] = [];
  /** Nodes that may belong to statements, by their start: the parser may read a range more than once. */
  readonly candidates = new Map<string, Candidate>();
  /** Imports and declarators of variables, in the same way. */
  readonly bindings = new Map<number, BindingNode>();
  /** Expression statements, in the same way. */
  readonly expressions = new Map<number, StatementNode>();

  override finishNode(node: Node, type: string): Node {
    const finished = super.finishNode(node, type);
    if (type === "TaggedTemplateExpression" || type === "CallExpression") {
      this.candidates.set(`${node.start} ${node.end}`, finished);
    }
    if (type === "ImportDeclaration" || type === "VariableDeclarator") {
      this.bindings.set(node.start, finished);
    }
    if (type === "ExpressionStatement") this.expressions.set(node.start, finished);
    return finished;
  }

  override parseStatement(context: unknown, topLevel?: boolean, exports?: unknown): Node {
    if (topLevel === true) {
      const node = this.#parseDeclaration();
      if (node !== undefined) return node;
    }
    return super.parseStatement(context, topLevel, exports);
  }

  #parseDeclaration(): Node | undefined {
    const isExported = this.type === tokTypes._export;
    const wordAt = isExported ? skipSpaces(this.input, this.end) : this.start;
    if (!isExported && this.type !== tokTypes.name) return undefined;
    const word = readWord(this.input, wordAt);
    const after = skipSpaces(this.input, wordAt + word.length);
    if (!WORDS.includes(word as Word)) {
      if (word !== "" && wordAt >= this.start) this.#refuseMisspelling(word, wordAt, after);
      return undefined;
    }
    if (!beginsDeclaration(word as Word, this.input, after, isExported)) return undefined;
    const node = this.startNode();
    const { start } = this;
    if (isExported) this.next();
    const declaration = this.#parseWord(word as Word, start, isExported, after);
    this.declarations.push(declaration);
    return this.finishNode(node, "ServiceDeclaration");
  }

  #parseWord(kind: Word, start: number, isExported: boolean, after: number): Declaration {
    if (isExported && UNNAMED.includes(kind)) {
      throw new SyntaxProblem(`${kind} cannot be exported: it has no name`, start);
    }
    const common = { start, isExported };
    switch (kind) {
      case "server":
      case "gateway": {
        this.next();
        const options = this.#parseOptions(kind);
        return { kind, ...common, options, end: this.lastTokEnd };
      }
      case "database":
      case "cache": {
        this.next();
        const name = String(this.value);
        const nameRange = { start: this.start, end: this.end };
        this.declareName(name, BIND_LEXICAL, this.start);
        this.next();
        const hasOptions =
          this.type === tokTypes.braceL && !hasLineBreak(this.input, nameRange.end, this.start);
        const options = hasOptions ? this.#parseOptions(kind) : undefined;
        return { kind, ...common, name, nameRange, options, end: this.lastTokEnd };
      }
      case "migrations": {
        this.next();
        const folder = String(this.value);
        const folderRange = { start: this.start, end: this.end };
        this.next();
        return { kind, ...common, folder, folderRange, end: this.lastTokEnd };
      }
      case "every":
        return { kind, ...common, ...this.#parseEvery(after), end: this.lastTokEnd };
      case "route":
        if (!isExported) {
          throw new SyntaxProblem("a route must be exported: write export route …", start);
        }
        return { kind, ...common, ...this.#parseRoute(after), end: this.lastTokEnd };
      default:
        return kind satisfies never;
    }
  }

  #parseEvery(after: number) {
    const quoted = /["']/.test(this.input[after] ?? "");
    let timing: string;
    let timingRange: Range;
    if (quoted) {
      this.next();
      timing = String(this.value);
      timingRange = { start: this.start, end: this.end };
      this.next();
    } else {
      timing = readUntil(this.input, after, /[\s({]/);
      timingRange = { start: after, end: after + timing.length };
      this.#skipTo(timingRange.end);
    }
    const { parameters, body } = this.#parseFunction("every", () => {});
    return { timing, timingRange, parameters, body };
  }

  #parseRoute(after: number) {
    const method = readUntil(this.input, after, /[^A-Za-z]/);
    const methodRange = { start: after, end: after + method.length };
    const pathStart = skipSpaces(this.input, methodRange.end);
    // Raw: `/files/*` would begin a comment, and `/notes/` a regular expression.
    const path = readUntil(this.input, pathStart, /[\s({]/);
    const pathRange = { start: pathStart, end: pathStart + path.length };
    if (!path.startsWith("/")) {
      throw new SyntaxProblem(`expected a path like /notes/:id after ${method}`, pathStart);
    }
    this.#skipTo(pathRange.end);
    const clauses: Clause[] = [];
    const { parameters, body } = this.#parseFunction("route", () => {
      while (this.type === tokTypes.name) clauses.push(this.#parseClause(clauses));
    });
    return { method, methodRange, path, pathRange, parameters, clauses, body };
  }

  #parseClause(known: readonly Clause[]): Clause {
    const name = String(this.value) as ClauseName;
    const nameStart = this.start;
    if (!CLAUSE_NAMES.includes(name)) {
      const expected = `${CLAUSE_NAMES.join(", ")} or the body in { }`;
      const near = CLAUSE_NAMES.find((known) => countEdits(known, name) <= NEAR_MAX);
      const meant = near === undefined ? "" : `; did you mean ${near}?`;
      throw new SyntaxProblem(`expected ${expected}, found ${name}${meant}`, nameStart);
    }
    if (known.some((clause) => clause.name === name)) {
      throw new SyntaxProblem(`${name} is repeated`, nameStart);
    }
    this.next();
    const { start } = this;
    const node = this.parseExprSubscripts();
    if (name === "gateway") this.rules.push(readRules("route", node));
    return { name, nameStart, value: { start, end: this.lastTokEnd } };
  }

  /** Parses `(parameters) clauses { body }` as an async function. */
  #parseFunction(
    kind: Word,
    parseClauses: () => void,
  ): { parameters: Range | undefined; body: Range } {
    const node = this.startNode() as Node & { async: boolean; generator: boolean; params: Node[] };
    Object.assign(node, { async: true, generator: false, params: [], id: null });
    const { yieldPos, awaitPos, awaitIdentPos } = this;
    Object.assign(this, { yieldPos: 0, awaitPos: 0, awaitIdentPos: 0 });
    const clausesFirst = this.type !== tokTypes.parenL;
    let parameters: Range | undefined;
    // The values of clauses belong to the file, not to the function.
    if (clausesFirst) parseClauses();
    this.enterScope(SCOPE_ASYNC_FUNCTION);
    if (!clausesFirst) {
      const { start } = this;
      this.parseFunctionParams(node);
      parameters = { start, end: this.lastTokEnd };
      parseClauses();
    }
    if (this.type !== tokTypes.braceL) {
      throw new SyntaxProblem(
        `expected the body of the ${kind} in { }, as in: ${HEADS[kind]}`,
        this.start,
      );
    }
    const { start } = this;
    this.parseFunctionBody(node, false, false, false);
    Object.assign(this, { yieldPos, awaitPos, awaitIdentPos });
    return { parameters, body: { start, end: this.lastTokEnd } };
  }

  #parseOptions(kind: Word): Range {
    if (this.type !== tokTypes.braceL) {
      throw new SyntaxProblem(`expected options in { }, as in: ${HEADS[kind]}`, this.start);
    }
    const { start } = this;
    const node = this.parseExprAtom();
    if (kind === "gateway") this.rules.push(readRules("all", node));
    return { start, end: this.lastTokEnd };
  }

  #skipTo(offset: number): void {
    this.lastTokEnd = offset;
    this.pos = offset;
    this.nextToken();
  }

  /** Two names in a row are no statement of TypeScript, so a similar word is a misspelled declaration. */
  #refuseMisspelling(word: string, wordAt: number, after: number): void {
    if (!/[\w$"'{]/.test(this.input[after] ?? "") || TYPESCRIPT_WORDS.has(word)) return;
    if (after === wordAt + word.length) return;
    const near = WORDS.find((known) => countEdits(known, word) <= NEAR_MAX);
    if (near === undefined) return;
    throw new SyntaxProblem(
      `unknown declaration ${word}; did you mean ${near}, as in: ${HEADS[near]}`,
      wordAt,
    );
  }
}

/** Words of TypeScript that other names may follow. */
const TYPESCRIPT_WORDS = new Set([
  "type",
  "declare",
  "namespace",
  "module",
  "abstract",
  "interface",
  "enum",
  "async",
  "let",
  "using",
  "global",
  "await",
  "default",
  "const",
  "class",
  "function",
  "var",
]);

/** True if a word begins a declaration: what follows on its line is no TypeScript after a name. */
function beginsDeclaration(word: Word, input: string, after: number, isExported: boolean): boolean {
  const next = input[after] ?? "";
  if (word === "server" || word === "gateway") return next === "{";
  if (word === "migrations") return next === '"' || next === "'";
  if (word === "every") return /[\d"']/.test(next);
  if (word === "route" && isExported) return true;
  const name = readWord(input, after);
  return name !== "" && !["in", "instanceof", "as", "satisfies", "of", "is"].includes(name);
}

function readWord(input: string, at: number): string {
  const found = /[A-Za-z_$][\w$]*/y;
  found.lastIndex = at;
  return found.exec(input)?.[0] ?? "";
}

function readUntil(input: string, at: number, stop: RegExp): string {
  const rest = input.slice(at);
  const end = rest.search(stop);
  return end === -1 ? rest : rest.slice(0, end);
}

/** Skips spaces of the line: a declaration begins on one line. */
function skipSpaces(input: string, at: number): number {
  let next = at;
  while (input[next] === " " || input[next] === "\t") next++;
  return next;
}

function hasLineBreak(input: string, start: number, end: number): boolean {
  return input.slice(start, end).includes("\n");
}

/** Levenshtein distance. */
function countEdits(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (const [i, letter] of Array.from(a).entries()) {
    const next = [i + 1];
    for (const [j, other] of Array.from(b).entries()) {
      next.push(Math.min(row[j]! + (letter === other ? 0 : 1), row[j + 1]! + 1, next[j]! + 1));
    }
    row = next;
  }
  return row.at(-1)!;
}
