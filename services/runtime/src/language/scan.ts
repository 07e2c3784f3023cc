// A tolerant reader of service files whose text has syntax errors, as while typing: it finds the heads of declarations
// and cuts their bodies by matching brackets, aware of strings, templates, regular expressions and comments.
import {
  type Insertion,
  CLAUSE_NAMES,
  type Clause,
  type ClauseName,
  type Declaration,
  type Range,
} from "./declaration.ts";

/** Result of {@link scanService}. */
export interface ScannedService {
  readonly declarations: readonly Declaration[];
  /** Brackets that are missing, where they are missing. */
  readonly closers: readonly Insertion[];
}

/** Heads of declarations; those at the start of a line end an unclosed body above them. */
const HEAD =
  /(export[ \t]+)?(?:(server|gateway)[ \t]*(?=\{)|(database|cache)[ \t]+(?=[A-Za-z_$])|(migrations)[ \t]+(?=["'])|(every)[ \t]+(?=[\d"'])|(route)\b)/y;
const CLOSERS: Readonly<Record<string, string>> = { "(": ")", "[": "]", "{": "}" };
/** A `/` after one of these begins a regular expression. */
const BEFORE_EXPRESSION =
  /(?:^|[=([{,;:!&|?+\-*%^~<>]|\b(?:return|typeof|case|in|of|delete|void|throw|await|yield|else|do))$/;
const REGULAR_EXPRESSION = /\/(?:[^\\/[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+\/[a-z]*/y;
const LOOK_BEHIND = 12;

/** Reads a text of any kind; never throws. */
export function scanService(source: string): ScannedService {
  return new Scanner(source).scan();
}

/** The offset behind a string, comment or regular expression that begins at an offset; undefined if none does. */
function skipToken(source: string, at: number): number | undefined {
  const char = source[at];
  if (char === '"' || char === "'") return skipQuoted(source, at, char);
  if (char !== "/") return undefined;
  if (source[at + 1] === "/") return indexOrEnd(source, "\n", at);
  if (source[at + 1] === "*") {
    return Math.min(source.length, indexOrEnd(source, "*/", at + 2) + 2);
  }
  const before = source.slice(Math.max(0, at - LOOK_BEHIND), at).trimEnd();
  if (!BEFORE_EXPRESSION.test(before)) return undefined;
  REGULAR_EXPRESSION.lastIndex = at;
  return REGULAR_EXPRESSION.test(source) ? REGULAR_EXPRESSION.lastIndex : undefined;
}

// A string ends with its line: the quote of an unfinished one changes no other line.
function skipQuoted(source: string, at: number, quote: string): number {
  for (let next = at + 1; next < source.length; next++) {
    if (source[next] === "\\") next++;
    else if (source[next] === quote) return next + 1;
    else if (source[next] === "\n") return next;
  }
  return source.length;
}

function indexOrEnd(source: string, text: string, from: number): number {
  const index = source.indexOf(text, from);
  return index === -1 ? source.length : index;
}

/** A statement at the start of a line with a bracket that is not closed before the next one. */
export interface Unclosed {
  /** Offset of the statement. */
  readonly start: number;
  /** The bracket that is missing. */
  readonly closer: string;
  /** Line of the bracket that it would close, from 1. */
  readonly openedAt: number;
  /** Line of the next statement; undefined at the end of the file. */
  readonly nextAt: number | undefined;
}

/** Begins a statement if it is at the start of a line: text inside brackets is indented. */
const STATEMENT =
  /(?:export|import|const|let|class|interface|type|function|async[ \t]+function|await|if|for|every|route|server|database|cache|test)\b/y;

/** The head of a route: its path may contain what begins a comment or a regular expression elsewhere. */
const ROUTE_HEAD = /export[ \t]+route[ \t]+[A-Za-z]*[ \t]*\/[^\s({]*/y;

/** Finds the first statement that lacks a closing bracket, by brackets and the starts of lines. */
export function findUnclosed(source: string): Unclosed | undefined {
  // Without indentation, the starts of lines say nothing.
  return findImbalance(source, false) && findImbalance(source, true);
}

function findImbalance(source: string, hasStatements: boolean): Unclosed | undefined {
  const stack: { closer: string; at: number }[] = [];
  for (let at = 0; at < source.length;) {
    const char = source[at]!;
    const { closer: expected } = stack.at(-1) ?? {};
    if (expected === "`") {
      if (char === "`") stack.pop();
      if (source.startsWith("${", at)) stack.push({ closer: "}", at: ++at });
      at += char === "\\" ? 2 : 1;
      continue;
    }
    const isLineStart = at === 0 || source[at - 1] === "\n";
    if (isLineStart && hasStatements && stack.length > 0 && matchesAt(STATEMENT, source, at)) {
      return describeStack(source, stack, at);
    }
    if (isLineStart && matchesAt(ROUTE_HEAD, source, at)) at = ROUTE_HEAD.lastIndex;
    const next = skipToken(source, at);
    const closer = char === "`" ? "`" : CLOSERS[source[at] ?? ""];
    if (next === undefined && closer !== undefined) stack.push({ closer, at });
    else if (next === undefined && /[)\]}]/.test(source[at] ?? "")) {
      // One that closes nothing is an error of its own.
      if (expected === undefined) return undefined;
      if (expected !== source[at]) return describeStack(source, stack, at);
      stack.pop();
    }
    at = next ?? at + 1;
  }
  return stack.length === 0 ? undefined : describeStack(source, stack, source.length);
}

function matchesAt(pattern: RegExp, source: string, at: number): boolean {
  pattern.lastIndex = at;
  return pattern.test(source);
}

function describeStack(
  source: string,
  stack: readonly { closer: string; at: number }[],
  end: number,
): Unclosed {
  const line = (at: number): number => source.slice(0, at).split("\n").length;
  const last = stack.at(-1)!;
  return {
    start: source.lastIndexOf("\n", stack[0]!.at) + 1,
    closer: last.closer,
    openedAt: line(last.at),
    nextAt: end < source.length ? line(end) : undefined,
  };
}

/** The message about a bracket that is missing. */
export function describeUnclosed({ closer, openedAt, nextAt }: Unclosed): string {
  const where = nextAt === undefined ? "before the end of the file" : `before line ${nextAt}`;
  const opener = Object.keys(CLOSERS).find((one) => CLOSERS[one] === closer) ?? "`";
  return `a closing ${closer} is missing ${where}, for the ${opener} of line ${openedAt}`;
}

class Scanner {
  readonly #source: string;
  readonly #declarations: Declaration[] = [];
  readonly #closers: Insertion[] = [];
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  scan(): ScannedService {
    const source = this.#source;
    while (this.#at < source.length) {
      const head = this.#isStatementStart() ? this.#matchHead() : undefined;
      if (head !== undefined) this.#readDeclaration(head);
      else if (/[([{`]/.test(source[this.#at]!)) this.#skipBrackets();
      else this.#skipAtom();
    }
    return { declarations: this.#declarations, closers: this.#closers };
  }

  /** True at the first character of a line or after a `;` or `}`. */
  #isStatementStart(): boolean {
    for (let before = this.#at - 1; before >= 0; before--) {
      const char = this.#source[before]!;
      if (/[\n;}]/.test(char)) return true;
      if (!/\s/.test(char)) return this.#source.slice(before - 1, before + 1) === "*/";
    }
    return true;
  }

  #matchHead(): RegExpExecArray | undefined {
    HEAD.lastIndex = this.#at;
    const head = HEAD.exec(this.#source);
    if (head === null || (head[6] !== undefined && head[1] === undefined)) return undefined;
    return head;
  }

  #skipAtom(): void {
    const skipped = skipToken(this.#source, this.#at);
    if (skipped !== undefined) this.#at = skipped;
    else if (/[\w$]/.test(this.#source[this.#at]!)) this.#readPattern(/[\w$]+/y);
    else this.#at++;
  }

  /**
   * Skips what a bracket or a template contains. An unclosed one ends at the next declaration at the start of a line, or
   * with the file; its closers are noted.
   */
  #skipBrackets(): Range {
    const source = this.#source;
    const start = this.#at;
    const stack: string[] = [];
    do {
      const char = source[this.#at];
      const isTemplate = stack.at(-1) === "`";
      if (char === undefined || (this.#isLineStart() && this.#matchHead() !== undefined)) {
        return this.#close(start, stack);
      }
      if (isTemplate) this.#skipTemplatePart(stack);
      else if (char === "`") this.#push(stack, "`");
      else if (CLOSERS[char] !== undefined) this.#push(stack, CLOSERS[char]);
      else if (char === stack.at(-1)) this.#pop(stack);
      else this.#skipAtom();
    } while (stack.length > 0);
    return { start, end: this.#at };
  }

  #skipTemplatePart(stack: string[]): void {
    const source = this.#source;
    if (source[this.#at] === "\\") this.#at = Math.min(source.length, this.#at + 2);
    else if (source[this.#at] === "`") this.#pop(stack);
    else if (source.startsWith("${", this.#at)) {
      this.#at++;
      this.#push(stack, "}");
    } else this.#at++;
  }

  #push(stack: string[], closer: string): void {
    stack.push(closer);
    this.#at++;
  }

  #pop(stack: string[]): void {
    stack.pop();
    this.#at++;
  }

  #close(start: number, stack: readonly string[]): Range {
    const text = this.#source.slice(0, this.#at);
    // Before the line break and comments that belong to what follows.
    const end = Math.max(start + 1, text.trimEnd().length);
    this.#closers.push({ at: end, text: `\n${stack.toReversed().join("")}` });
    return { start, end };
  }

  #isLineStart(): boolean {
    return this.#at === 0 || this.#source[this.#at - 1] === "\n";
  }

  #readPattern(pattern: RegExp): Range & { text: string } {
    const start = this.#at;
    pattern.lastIndex = start;
    const text = pattern.exec(this.#source)?.[0] ?? "";
    this.#at = start + text.length;
    return { start, end: this.#at, text };
  }

  #skipSpaces(): void {
    this.#readPattern(/[ \t]*/y);
  }

  /** Skips spaces, line breaks and comments, but no declaration. */
  #skipBlank(): void {
    for (;;) {
      this.#readPattern(/\s*/y);
      const isComment = /^\/[/*]/.test(this.#source.slice(this.#at, this.#at + 2));
      const skipped = isComment ? skipToken(this.#source, this.#at) : undefined;
      if (skipped === undefined) return;
      this.#at = skipped;
    }
  }

  #readDeclaration(head: RegExpExecArray): void {
    const start = this.#at;
    const isExported = head[1] !== undefined;
    this.#at += head[0].length;
    const common = { start, isExported };
    const [, , server, store, migrations, every] = head;
    if (server !== undefined) {
      const options = this.#skipBrackets();
      this.#add({ kind: server as "server" | "gateway", ...common, options, end: options.end });
    } else if (store !== undefined) this.#readStore(store as "database" | "cache", common);
    else if (migrations !== undefined) {
      const folderRange = this.#readString();
      const folder = this.#source.slice(folderRange.start + 1, folderRange.end - 1);
      this.#add({ kind: "migrations", ...common, folder, folderRange, end: folderRange.end });
    } else if (every !== undefined) this.#readEvery(common);
    else this.#readRoute(common);
  }

  #add(declaration: Declaration): void {
    this.#declarations.push(declaration);
  }

  #readString(): Range {
    const start = this.#at;
    this.#at = skipToken(this.#source, start) ?? start;
    return { start, end: this.#at };
  }

  #readStore(kind: "database" | "cache", common: { start: number; isExported: boolean }): void {
    const { text: name, ...nameRange } = this.#readPattern(/[\w$]+/y);
    this.#skipSpaces();
    const options = this.#source[this.#at] === "{" ? this.#skipBrackets() : undefined;
    const end = options?.end ?? nameRange.end;
    this.#add({ kind, ...common, name, nameRange, options, end });
  }

  #readEvery(common: { start: number; isExported: boolean }): void {
    const isQuoted = /["']/.test(this.#source[this.#at] ?? "");
    const timingRange = isQuoted ? this.#readString() : this.#readPattern(/[^\s({]*/y);
    const written = this.#source.slice(timingRange.start, timingRange.end);
    const timing = isQuoted ? written.slice(1, -1) : written;
    this.#skipSpaces();
    const parameters = this.#source[this.#at] === "(" ? this.#skipBrackets() : undefined;
    const body = this.#readBody(parameters?.end ?? timingRange.end);
    this.#add({
      kind: "every",
      ...common,
      timing,
      timingRange: { start: timingRange.start, end: timingRange.end },
      parameters,
      body,
      end: body.end,
    });
  }

  #readRoute(common: { start: number; isExported: boolean }): void {
    this.#skipSpaces();
    const { text: method, ...methodRange } = this.#readPattern(/[A-Za-z]*/y);
    this.#skipSpaces();
    const { text: path, ...pathRange } = this.#readPattern(/(?:\/[^\s({]*)?/y);
    this.#skipSpaces();
    const parameters = this.#source[this.#at] === "(" ? this.#skipBrackets() : undefined;
    const clauses: Clause[] = [];
    let end = parameters?.end ?? pathRange.end;
    for (let clause = this.#readClause(); clause !== undefined; clause = this.#readClause()) {
      const { name, value } = clause;
      if (!clauses.some((known) => known.name === name)) clauses.push(clause);
      ({ end } = value);
    }
    const body = this.#readBody(end);
    this.#add({
      kind: "route",
      ...common,
      method,
      methodRange,
      path,
      pathRange,
      parameters,
      clauses,
      body,
      end: body.end,
    });
  }

  #readClause(): Clause | undefined {
    const back = this.#at;
    this.#skipBlank();
    const { text, start: nameStart } = this.#readPattern(/[a-z]*/y);
    if (!CLAUSE_NAMES.includes(text as ClauseName)) {
      this.#at = back;
      return undefined;
    }
    this.#skipSpaces();
    const start = this.#at;
    if (this.#source[this.#at] === "{") this.#skipBrackets();
    else this.#skipClauseValue();
    return { name: text as ClauseName, nameStart, value: { start, end: this.#at } };
  }

  /** A value ends before a space: `requires "notes:read"`, `body object({ … })`. */
  #skipClauseValue(): void {
    while (this.#at < this.#source.length && !/[\s{]/.test(this.#source[this.#at]!)) {
      if (/[([`]/.test(this.#source[this.#at]!)) this.#skipBrackets();
      else this.#skipAtom();
    }
  }

  /** The body in { }; an empty range behind `end` if it is not written yet. */
  #readBody(end: number): Range {
    this.#at = end;
    this.#skipBlank();
    if (this.#source[this.#at] === "{") return this.#skipBrackets();
    this.#at = end;
    return { start: end, end };
  }
}
