// `platform convert`: a service file as plain TypeScript.
import {
  existsSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, relative, resolve } from "node:path";
import { compileService } from "../language/compile.ts";
import { convertToPlain } from "../language/plain.ts";
import { CompileError } from "../language/source-problem.ts";
import { describeMissing } from "./run.ts";

/** Options of `platform convert`. */
export interface ConvertOptions {
  readonly file: string;
  /** Path of a new file; default: the text is printed. */
  readonly out: string | undefined;
  /** Replaces the file. */
  readonly write: boolean;
}

/** Converts a file, and prints the text, or writes it. Resolves to the exit code: 1 for a file with errors. */
export async function runConvert({ file, out, write }: ConvertOptions): Promise<number> {
  if (write && out !== undefined) throw new Error("--write and --out exclude each other");
  const path = resolve(file);
  if (!existsSync(path)) throw new Error(describeMissing(file));
  if (out !== undefined) checkTarget(path, out);
  let text: string;
  try {
    const source = readFileSync(path, "utf8");
    const name = relative(process.cwd(), path);
    // Errors of declarations, which would become errors of a start.
    compileService(source, name);
    text = convertToPlain(source, name);
  } catch (error) {
    if (!(error instanceof CompileError)) throw error;
    process.stderr.write(`${error.message}\n`);
    return 1;
  }
  if (out !== undefined) writeFileSync(out, text, { flag: "wx" });
  else if (write) replace(realpathSync(path), text);
  else process.stdout.write(text);
  if (out !== undefined || write) process.stdout.write(`Written: ${out ?? file}\n`);
  return 0;
}

/** Imports and folders of migrations are relative to the file. */
function checkTarget(path: string, out: string): void {
  const target = resolve(out);
  if (existsSync(target)) {
    throw new Error(`${out} exists; choose another name, or replace the service file by --write`);
  }
  if (dirname(target) !== dirname(path)) {
    throw new Error(
      `${out} is in another folder, where imports and migrations would not be found; write it beside the service file, and move it yourself`,
    );
  }
}

function replace(path: string, text: string): void {
  const draft = `${path}.${process.pid}`;
  try {
    writeFileSync(draft, text, { mode: statSync(path).mode });
    renameSync(draft, path);
  } finally {
    rmSync(draft, { force: true });
  }
}
