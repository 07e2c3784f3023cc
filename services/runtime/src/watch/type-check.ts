// Type errors of a running service: `platform check` runs beside it after each change.
import { spawn, type ChildProcess } from "node:child_process";
import { readFileSync } from "node:fs";
import { setPriority } from "node:os";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { formatProblem, type SourceProblem } from "../language/source-problem.ts";

const MAIN = fileURLToPath(new URL("../../../../bin/platform.js", import.meta.url));
const OUTPUT_CHARACTERS_MAX = 1_048_576;
const PROBLEMS_MAX = 10;
/** The service and its next start come first. */
const PRIORITY = 10;
const VARIABLE = "PLATFORM_SERVICE_TYPE_CHECK";

/** Checks one version of a file at a time, unless `PLATFORM_SERVICE_TYPE_CHECK` is `off`. */
export class TypeCheck {
  readonly #file: string;
  readonly #write: (text: string) => void;
  readonly #isOn: boolean;
  #process: ChildProcess | undefined;
  #hadErrors = false;

  /** `write` receives lines. Throws if `setting`, by default the variable, is neither `on`, the default, nor `off`. */
  constructor(file: string, write: (text: string) => void, setting = process.env[VARIABLE]) {
    this.#isOn = readSetting(setting);
    this.#file = file;
    this.#write = write;
  }

  /** Checks the file as it is now; a check of an earlier version ends. */
  start(): void {
    this.stop();
    if (!this.#isOn) return;
    const child = spawn(process.execPath, [MAIN, "check", this.#file, "--json"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    this.#process = child;
    if (child.pid !== undefined) lowerPriority(child.pid);
    let text = "";
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      if (text.length < OUTPUT_CHARACTERS_MAX) text += piece;
    });
    // The service runs without its check.
    child.on("error", () => {});
    child.once("close", () => {
      if (this.#process !== child) return;
      this.#process = undefined;
      this.#report(text);
    });
  }

  /** Ends the check. */
  stop(): void {
    this.#process?.kill("SIGKILL");
    this.#process = undefined;
  }

  #report(text: string): void {
    const errors = readErrors(text);
    if (errors === undefined) return;
    if (errors.length === 0) {
      if (this.#hadErrors) this.#write("platform: no type errors\n");
      this.#hadErrors = false;
      return;
    }
    this.#hadErrors = true;
    for (const problem of errors.slice(0, PROBLEMS_MAX)) {
      this.#write(`${formatProblem(problem, readFileSync(resolve(problem.path), "utf8"))}\n`);
    }
    const count = errors.length === 1 ? "1 error" : `${errors.length} errors`;
    this.#write(`platform: ${count}; the service runs nevertheless\n`);
  }
}

function readSetting(value = ""): boolean {
  if (!["", "on", "off"].includes(value)) {
    throw new Error(`${VARIABLE} is "${value}"; expected "on" or "off"`);
  }
  return value !== "off";
}

function readErrors(text: string): SourceProblem[] | undefined {
  try {
    const problems = JSON.parse(text) as SourceProblem[];
    return problems.filter(({ severity }) => severity === "error");
  } catch {
    return undefined;
  }
}

function lowerPriority(pid: number): void {
  try {
    setPriority(pid, PRIORITY);
  } catch {
    // It has ended already.
  }
}
