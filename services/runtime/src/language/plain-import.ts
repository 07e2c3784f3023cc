// The import of a converted file: the author's own one with more names, or a new line at the top.
import type { MagicString } from "magic-string";
import type { BindingNode } from "./databases.ts";

const PACKAGE = "@platform/service";
/** A comment at the top, which is about the file if an empty line follows. */
const FILE_COMMENT = /^(?:[ \t]*\/\/[^\n]*\n|\/\*(?:[^*]|\*(?!\/))*\*\/[ \t]*\r?\n)+(?=\r?\n)/;

/** An import with the kinds that the parser reports. */
interface ImportNode extends BindingNode {
  readonly importKind?: string;
  readonly specifiers?: readonly (NonNullable<BindingNode["specifiers"]>[number] & {
    readonly type?: string;
    readonly start: number;
    readonly end: number;
    readonly importKind?: string;
  })[];
}

/** The imports of a file. */
export class PlainImport {
  readonly #source: string;
  readonly #imports: readonly ImportNode[];

  constructor(source: string, body: readonly BindingNode[]) {
    this.#source = source;
    this.#imports = body.filter(({ type }) => type === "ImportDeclaration") as ImportNode[];
  }

  /** The name under which the file imports a function of the package already. */
  findLocal(name: string): string | undefined {
    for (const node of this.#imports) {
      if (node.source?.value !== PACKAGE || node.importKind === "type") continue;
      const found = node.specifiers?.find(
        ({ imported, importKind }) => imported?.name === name && importKind !== "type",
      );
      if (found !== undefined) return found.local.name;
    }
    return undefined;
  }

  /** Adds the functions that are not imported yet; returns the text. */
  add(
    text: MagicString,
    locals: Readonly<Record<string, string>>,
    used: readonly string[],
    firstDeclaration: number,
  ): string {
    const missing = used.filter((name) => this.findLocal(name) === undefined);
    const specifiers = missing.map((name) =>
      locals[name] === name ? name : `${name} as ${locals[name]}`,
    );
    if (specifiers.length > 0) {
      const own = this.#imports.find(isExtensible);
      if (own !== undefined) this.#extend(text, own, specifiers);
      else this.#insert(text, specifiers, firstDeclaration);
    }
    return text.toString();
  }

  #extend(text: MagicString, { specifiers = [] }: ImportNode, added: readonly string[]): void {
    const source = this.#source;
    const first = specifiers[0]!;
    const last = specifiers.at(-1)!;
    const written = specifiers.map(({ start, end }) => source.slice(start, end));
    const between = source.slice(first.start, last.end);
    const isOneLine = !between.includes("\n");
    if (isOneLine && isSorted(written)) {
      text.update(first.start, last.end, [...written, ...added].toSorted(compareNames).join(", "));
      return;
    }
    const lineStart = source.lastIndexOf("\n", last.start - 1) + 1;
    const indent = source.slice(lineStart, last.start);
    const isOwnLine = indent.trim() === "" && lineStart > 0;
    const separator = isOwnLine ? `,${findLineBreak(source)}${indent}` : ", ";
    text.appendLeft(last.end, added.map((name) => separator + name).join(""));
  }

  #insert(text: MagicString, specifiers: readonly string[], firstDeclaration: number): void {
    const source = this.#source;
    const lineBreak = findLineBreak(source);
    const line = `import { ${specifiers.join(", ")} } from "${PACKAGE}";${lineBreak}`;
    const [firstImport] = this.#imports;
    if (firstImport !== undefined && firstImport.start < firstDeclaration) {
      text.appendLeft(firstImport.start, line);
      return;
    }
    const skipped = /^\uFEFF?(?:#![^\n]*\n)?/.exec(source)![0].length;
    const comment = FILE_COMMENT.exec(source.slice(skipped))?.[0].length ?? 0;
    text.appendLeft(skipped + comment, comment === 0 ? line + lineBreak : line);
  }
}

/** True for an import of values by their names. */
function isExtensible({ source, importKind, specifiers = [] }: ImportNode): boolean {
  return (
    source?.value === PACKAGE &&
    importKind !== "type" &&
    specifiers.length > 0 &&
    specifiers.every(({ type }) => type === "ImportSpecifier")
  );
}

/** In the order of formatters, which ignore upper case. */
function compareNames(a: string, b: string): number {
  const [first, second] = [a, b].map((name) => name.replace(/^type /, "").toLowerCase());
  return first! < second! ? -1 : first! > second! ? 1 : 0;
}

function isSorted(names: readonly string[]): boolean {
  return names.toSorted(compareNames).every((name, index) => name === names[index]);
}

function findLineBreak(source: string): string {
  return /\r?\n/.exec(source)?.[0] ?? "\n";
}
