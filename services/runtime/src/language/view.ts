// The view of a service file that TypeScript's language server reads: each part of the author's text is copied once and
// at most once, so that positions map both ways; text between the copies is inserted, and belongs to no position.
import type {
  Insertion,
  Declaration,
  EveryDeclaration,
  Range,
  RouteDeclaration,
  StoreDeclaration,
} from "./declaration.ts";

/** Not an import: TypeScript would write the author's imports into it, and offer its names. */
const PACKAGE = '(0 as any as typeof import("@platform/service")).';
const PLAIN_PATH = /^[^"\\]*$/;

/** A copied or an inserted part. */
interface Piece {
  readonly view: number;
  readonly source: number;
  /** Length in the view. */
  readonly length: number;
  readonly isCopied: boolean;
}

/** A text of TypeScript, and where its parts come from. Offsets are in UTF-16 units. */
export class View {
  readonly text: string;
  /** In the order of the view. */
  readonly #pieces: readonly Piece[];
  /** Copied pieces in the order of the source. */
  readonly #copies: readonly Piece[];

  constructor(text: string, pieces: readonly Piece[]) {
    this.text = text;
    this.#pieces = pieces;
    this.#copies = pieces
      .filter(({ isCopied }) => isCopied)
      .sort((a, b) => a.source - b.source || a.view - b.view);
  }

  /**
   * The offset in the view; undefined in a part that is not copied. Between two parts, `side` chooses: the text before
   * the offset, as in completions, or the text after it.
   */
  toView(offset: number, side: "before" | "after" = "after"): number | undefined {
    const index = findLast(this.#copies, ({ source }) => source <= offset);
    let piece = this.#copies[index];
    if (piece === undefined) return undefined;
    const before = this.#copies[index - 1];
    const isStart = offset === piece.source;
    if (side === "before" && isStart && before && before.source + before.length === offset) {
      piece = before;
    }
    const distance = offset - piece.source;
    return distance <= piece.length ? piece.view + distance : undefined;
  }

  /** The offset in the source; undefined in an inserted part. */
  toSource(offset: number, side: "before" | "after" = "after"): number | undefined {
    const index = findLast(this.#pieces, ({ view }) => view <= offset);
    const piece = this.#pieces[index];
    if (piece === undefined) return undefined;
    const before = this.#pieces[index - 1];
    const isEndOfCopy = offset === piece.view && before?.isCopied === true;
    if (isEndOfCopy && (side === "before" || !piece.isCopied)) return before.source + before.length;
    if (!piece.isCopied) return undefined;
    return piece.source + offset - piece.view;
  }

  /** The range in the source; undefined if an end lies in an inserted part, or between them is other text. */
  toSourceRange({ start, end }: Range): Range | undefined {
    if (start === end) {
      const at = this.toSource(start);
      return at === undefined ? undefined : { start: at, end: at };
    }
    const from = this.#startInSource(start);
    const to = this.toSource(end, "before");
    if (from === undefined || to === undefined || to < from) return undefined;
    return { start: from, end: to };
  }

  // The first character of a range is the one behind its start.
  #startInSource(offset: number): number | undefined {
    const piece = this.#pieces[findLast(this.#pieces, ({ view }) => view <= offset)];
    if (piece === undefined || !piece.isCopied) return undefined;
    return offset - piece.view < piece.length ? piece.source + offset - piece.view : undefined;
  }

  /** The nearest range in the source: a message about inserted text is shown at the declaration that it belongs to. */
  toNearestRange({ start, end }: Range): Range {
    const exact = this.toSourceRange({ start, end });
    if (exact !== undefined) return exact;
    const from = this.#nearest(start);
    const to = this.toSource(end, "before") ?? from;
    return { start: from, end: Math.max(from, to) };
  }

  #nearest(offset: number): number {
    const piece = this.#pieces[findLast(this.#pieces, ({ view }) => view <= offset)];
    if (piece === undefined) return 0;
    return piece.source + (piece.isCopied ? Math.min(piece.length, offset - piece.view) : 0);
  }
}

function findLast<T>(sorted: readonly T[], matches: (one: T) => boolean): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (matches(sorted[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Parts of a view, in its order. */
class ViewBuilder {
  readonly source: string;
  readonly #insertions: readonly Insertion[];
  readonly #pieces: Piece[] = [];
  readonly #texts: string[] = [];
  #length = 0;

  constructor(source: string, insertions: readonly Insertion[]) {
    this.source = source;
    this.#insertions = insertions.toSorted((a, b) => a.at - b.at);
  }

  /** Copies a range; texts to insert in it, or at its end, follow the characters before them. */
  copy({ start, end }: Range): void {
    let from = start;
    const first = findLast(this.#insertions, ({ at }) => at <= start) + 1;
    for (let index = first; index < this.#insertions.length; index++) {
      const { at, text } = this.#insertions[index]!;
      if (at > end) break;
      this.#add(from, this.source.slice(from, at), true);
      this.insert(text, at);
      from = at;
    }
    this.#add(from, this.source.slice(from, end), true);
  }

  /** Inserts a text that belongs to an offset of the source. */
  insert(text: string, offset: number): void {
    this.#add(offset, text, false);
  }

  #add(source: number, text: string, isCopied: boolean): void {
    if (text === "") return;
    this.#pieces.push({ view: this.#length, source, length: text.length, isCopied });
    this.#texts.push(text);
    this.#length += text.length;
  }

  build(): View {
    return new View(this.#texts.join(""), this.#pieces);
  }
}

/** Creates the view of a file; `insertions` are types, and brackets that are missing. */
export function createView(
  source: string,
  declarations: readonly Declaration[],
  insertions: readonly Insertion[] = [],
): View {
  const builder = new ViewBuilder(source, insertions);
  const migrations = declarations.find((one) => one.kind === "migrations");
  const firstDatabase = declarations.find(({ kind }) => kind === "database");
  let at = 0;
  for (const declaration of declarations) {
    builder.copy({ start: at, end: declaration.start });
    const folder = declaration === firstDatabase ? migrations?.folder : undefined;
    addDeclaration(builder, declaration, folder);
    at = declaration.end;
  }
  builder.copy({ start: at, end: source.length });
  return builder.build();
}

function addDeclaration(
  builder: ViewBuilder,
  declaration: Declaration,
  folder: string | undefined,
): void {
  switch (declaration.kind) {
    case "server":
    case "gateway":
      addCall(builder, declaration);
      builder.insert("(", declaration.options.start);
      builder.copy(declaration.options);
      builder.insert(");", declaration.end);
      break;
    case "database":
    case "cache":
      addStore(builder, declaration, folder);
      break;
    case "migrations":
      builder.insert(";", declaration.start);
      break;
    case "every":
      addSchedule(builder, declaration);
      break;
    case "route":
      addRoute(builder, declaration);
      break;
    default:
      declaration satisfies never;
  }
}

/** The range of the word of a declaration, without `export`. */
export function findWord(source: string, { start, isExported, kind }: Declaration): Range {
  const at = isExported ? source.indexOf(kind, start + "export".length) : start;
  return { start: at, end: at + kind.length };
}

// A statement of the author before it may lack its semicolon.
function addCall(builder: ViewBuilder, declaration: Declaration): void {
  builder.insert(`;${PACKAGE}`, declaration.start);
  builder.copy(findWord(builder.source, declaration));
}

function addStore(
  builder: ViewBuilder,
  declaration: StoreDeclaration,
  folder: string | undefined,
): void {
  const { kind, start, end, isExported, name, nameRange, options } = declaration;
  if (isExported) builder.copy({ start, end: start + "export".length });
  builder.insert(`${isExported ? " " : ";"}const `, start);
  builder.copy(nameRange);
  builder.insert(` = ${PACKAGE}`, start);
  builder.copy(findWord(builder.source, declaration));
  builder.insert(kind === "cache" ? "(" : `(${JSON.stringify(name)}, `, nameRange.start);
  const added = folder === undefined ? "" : ` migrations: ${JSON.stringify(folder)}, `;
  if (options === undefined) builder.insert(`{${added}}`, nameRange.end);
  else {
    builder.copy({ start: options.start, end: options.start + 1 });
    builder.insert(added, options.start + 1);
    builder.copy({ start: options.start + 1, end: options.end });
  }
  builder.insert(kind === "cache" ? ");" : ", import.meta.url);", end);
}

function addSchedule(builder: ViewBuilder, declaration: EveryDeclaration): void {
  const { timing, timingRange, parameters, body } = declaration;
  addCall(builder, declaration);
  builder.insert(`(${JSON.stringify(timing)}, async `, timingRange.start);
  addFunction(builder, parameters, body);
}

function addRoute(builder: ViewBuilder, declaration: RouteDeclaration): void {
  const { methodRange, path, pathRange, clauses, parameters, body } = declaration;
  addCall(builder, declaration);
  builder.insert('("', methodRange.start);
  builder.copy(methodRange);
  builder.insert('", ', methodRange.end);
  if (PLAIN_PATH.test(path)) {
    builder.insert('"', pathRange.start);
    builder.copy(pathRange);
    builder.insert('", ', pathRange.end);
  } else builder.insert(`${JSON.stringify(path)}, `, pathRange.start);
  for (const [index, { name, nameStart, value }] of clauses.entries()) {
    builder.insert(index === 0 ? "{ " : ", ", nameStart);
    builder.copy({ start: nameStart, end: nameStart + name.length });
    builder.insert(": ", value.start);
    builder.copy(value);
  }
  if (clauses.length > 0) builder.insert(" }, ", clauses.at(-1)!.value.end);
  builder.insert("async ", parameters?.start ?? body.start);
  addFunction(builder, parameters, body);
}

function addFunction(builder: ViewBuilder, parameters: Range | undefined, body: Range): void {
  if (parameters === undefined) builder.insert("()", body.start);
  else builder.copy(parameters);
  builder.insert(" => ", body.start);
  if (body.start === body.end) builder.insert("{}", body.start);
  else builder.copy(body);
  builder.insert(");", body.end);
}

/**
 * Creates the view for formatting: each declaration is a function with the same body, so that edits lie in bodies and on
 * their lines.
 */
export function createFormatView(source: string, declarations: readonly Declaration[]): View {
  const builder = new ViewBuilder(source, []);
  let at = 0;
  for (const declaration of declarations) {
    builder.copy({ start: at, end: declaration.start });
    const { kind, start, end } = declaration;
    const block = kind === "route" || kind === "every" ? declaration.body : undefined;
    if (block === undefined) builder.insert("function f() {}", start);
    else {
      builder.insert("async function f() ", start);
      builder.copy(block);
    }
    at = end;
  }
  builder.copy({ start: at, end: source.length });
  return builder.build();
}
