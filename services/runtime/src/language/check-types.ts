// Types of compiled service files: TypeScript's compiler runs on plain files, its messages are mapped back.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire, SourceMap, type SourceMapPayload } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import type { Compiled } from "./compile.ts";
import type { SourceProblem } from "./source-problem.ts";

const MESSAGE = /^(.+?)\((\d+),(\d+)\): error (TS\d+): (.*)$/;
const OUTPUT_BYTES_MAX = 16_777_216;

/** Checks a file; undefined if TypeScript is not installed in the project or this installation. */
export function checkTypes(file: string, compiled: Compiled): SourceProblem[] | undefined {
  const compiler = findCompiler(dirname(file));
  if (compiler === undefined) return undefined;
  const folder = mkdtempSync(join(tmpdir(), "platform-check-"));
  try {
    const name = basename(file);
    writeFileSync(join(folder, name), compiled.code);
    writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(createConfig(file, folder)));
    const run = spawnSync(process.execPath, [compiler, "-p", folder, "--pretty", "false"], {
      encoding: "utf8",
      cwd: folder,
      maxBuffer: OUTPUT_BYTES_MAX,
    });
    return run.stdout.split("\n").flatMap((line) => readMessage(line, folder, file, compiled));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function findCompiler(folder: string): string | undefined {
  for (const from of [join(folder, "x.js"), import.meta.url]) {
    try {
      return join(dirname(createRequire(from).resolve("typescript/package.json")), "bin/tsc");
    } catch {
      // Not installed here.
    }
  }
  return undefined;
}

/** The compiled file lies in its own folder; `rootDirs` resolves its imports beside the author's. */
function createConfig(file: string, folder: string): object {
  const source = fileURLToPath(new URL(".", import.meta.resolve("@platform/service")));
  const types = resolve(source, "../../../node_modules/@types");
  return {
    compilerOptions: {
      target: "esnext",
      lib: ["esnext"],
      module: "nodenext",
      moduleResolution: "nodenext",
      moduleDetection: "force",
      noEmit: true,
      strict: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      erasableSyntaxOnly: true,
      types: ["node"],
      typeRoots: [types, join(dirname(file), "node_modules/@types")],
      rootDirs: [folder, dirname(file)],
      paths: {
        "@platform/service": [join(source, "index.ts")],
        "@platform/service/*": [join(source, "*.ts")],
        "*": [join(dirname(file), "node_modules/*")],
      },
    },
    files: [basename(file)],
  };
}

/** Messages about other files, such as imported ones, keep their positions; those of the package are not shown. */
function readMessage(
  line: string,
  folder: string,
  file: string,
  { map }: Compiled,
): SourceProblem[] {
  const [, name = "", row, column, code, text = ""] = MESSAGE.exec(line) ?? [];
  if (name === "") return [];
  const path = resolve(folder, name);
  const message = `${text} (${code})`;
  const position = { line: Number(row), column: Number(column) };
  if (path === join(folder, basename(file))) {
    const mapped = map === null ? position : mapPosition(map, position);
    return [{ path: relative(process.cwd(), file), ...mapped, severity: "error", message }];
  }
  if (path.includes("/node_modules/") || !path.startsWith(`${dirname(file)}/`)) return [];
  return [{ path: relative(process.cwd(), path), ...position, severity: "error", message }];
}

function mapPosition(
  map: string,
  { line, column }: { line: number; column: number },
): { line: number; column: number } {
  const entry = new SourceMap(JSON.parse(map) as SourceMapPayload).findEntry(line - 1, column - 1);
  if (!("originalLine" in entry)) return { line, column };
  const offset = column - 1 - entry.generatedColumn;
  const isSameLine = entry.generatedLine === line - 1;
  return {
    line: entry.originalLine + 1,
    column: entry.originalColumn + 1 + (isSameLine ? Math.max(0, offset) : 0),
  };
}
