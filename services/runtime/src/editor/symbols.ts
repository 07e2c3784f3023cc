// Symbols of a service file: its declarations, with TypeScript's symbols of their bodies below them.
import type { Declaration } from "../language/declaration.ts";
import type { Analysis } from "./document.ts";
import type { DocumentSymbol, LineRange } from "./protocol.ts";

const KINDS: Readonly<Record<Declaration["kind"], number>> = {
  server: 2,
  gateway: 2,
  database: 13,
  migrations: 15,
  cache: 13,
  route: 12,
  every: 24,
};

/** Combines the declarations with symbols of the rest of the file. */
export function createSymbols(
  { declarations, lines, source }: Analysis,
  symbols: readonly DocumentSymbol[],
): DocumentSymbol[] {
  const toRange = (start: number, end: number): LineRange => ({
    start: lines.toPosition(start),
    end: lines.toPosition(end),
  });
  const own = declarations.map((declaration): DocumentSymbol => {
    const { start, end, kind } = declaration;
    const range = toRange(start, end);
    const children = symbols.filter((symbol) => isInside(symbol.range, range));
    const headEnd = "body" in declaration ? declaration.body.start : end;
    const length = source.slice(start, headEnd).trimEnd().length;
    const selectionRange = toRange(start, start + length);
    return { name: nameOf(declaration), kind: KINDS[kind], range, selectionRange, children };
  });
  const rest = symbols.filter(({ range }) => !own.some((one) => isInside(range, one.range)));
  return [...own, ...rest].sort((a, b) => compare(a.range.start, b.range.start));
}

function nameOf(declaration: Declaration): string {
  switch (declaration.kind) {
    case "server":
    case "gateway":
      return declaration.kind;
    case "migrations":
      return `migrations ${declaration.folder}`;
    case "every":
      return `every ${declaration.timing}`;
    case "route":
      return `${declaration.method} ${declaration.path}`;
    case "database":
    case "cache":
      return `${declaration.kind} ${declaration.name}`;
    default:
      return declaration satisfies never;
  }
}

function isInside(inner: LineRange, outer: LineRange): boolean {
  return compare(outer.start, inner.start) <= 0 && compare(inner.end, outer.end) <= 0;
}

function compare(a: LineRange["start"], b: LineRange["start"]): number {
  return a.line - b.line || a.character - b.character;
}
