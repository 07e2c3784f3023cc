// A bundle as a script: Node reads the code cache of scripts only, and compiling a module takes longer than starting it.

/** Statements of the bundler's imports: a default, a namespace and a list of names. */
const IMPORT =
  /^import (?:([\w$]+)(?:, )?)?(?:\* as ([\w$]+) )?(?:\{ ?([^}]*?) ?\} )?(?:from )?"([^"]+)";$/;
const REQUIRE = "createRequire(import.meta.url)";

/** Name that stands for `import.meta` in bundles. */
export const META_NAME = "import_meta";

/** Expressions for the path of the program: that of the executable, or of the script. */
const PATHS = { executable: "process.execPath", container: "__filename" } as const;

/** The form of a built service: an executable that contains Node, or a script for an image with Node. */
export type BuildForm = keyof typeof PATHS;

/**
 * Turns a bundled module, which imports modules of Node only, into a script that Node runs as CommonJS. Lines stay lines.
 * Throws for other forms of imports and exports.
 */
export function toScript(module: string, form: BuildForm): string {
  const lines = module.trimEnd().split("\n");
  let count = 0;
  while (lines[count]?.startsWith("import ") === true) {
    lines[count] = toDeclaration(lines[count]!);
    count++;
  }
  const last = lines.pop()!;
  if (last !== "export {};") lines.push(last);
  const path = PATHS[form];
  const meta = `{ url: require("node:url").pathToFileURL(${path}).href, filename: ${path} }`;
  const code = lines.join("\n").replace(REQUIRE, "require");
  return `"use strict"; const ${META_NAME} = ${meta}; (async () => { ${code}\n})();\n`;
}

function toDeclaration(line: string): string {
  const [, first, space, list, name] = IMPORT.exec(line) ?? [];
  if (name === undefined) throw new Error(`unexpected form of an import in a bundle: ${line}`);
  const source = `require(${JSON.stringify(name)})`;
  const declared = [
    first === undefined ? [] : `${first} = ${source}`,
    space === undefined ? [] : `${space} = ${source}`,
    list === undefined ? [] : `{ ${list.replaceAll(" as ", ": ")} } = ${source}`,
  ].flat();
  return declared.length === 0 ? `${source};` : `const ${declared.join(", ")};`;
}
