// Programs of the operator: an argument list, an environment of their own, bounded output, and an end by a signal.
import { type ChildProcess, spawn } from "node:child_process";

const OUTPUT_CHARACTERS_MAX = 64 * 1024;

/** Options of {@link runProgram}. */
export interface RunOptions {
  /** The complete environment, beside PATH. */
  env?: Readonly<Record<string, string>>;
  /** Ends the program with its children. */
  signal: AbortSignal;
  /** Called with each piece of the output. */
  onOutput?: (text: string) => void;
}

/** Outcome of a program. */
export interface ProgramEnd {
  /** Null if a signal ended it. */
  code: number | null;
  /** At most 64 KiB each; the rest is dropped. */
  stdout: string;
  stderr: string;
}

/** Runs a program without a shell and without input. Rejects with the system's error if it cannot start. */
export async function runProgram(
  program: string,
  args: readonly string[],
  { env = {}, signal, onOutput = () => undefined }: RunOptions,
): Promise<ProgramEnd> {
  const child = spawn(program, args, {
    // A group of its own, which is killed with all that it has started.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
    env: { PATH: process.env["PATH"] ?? "/usr/bin:/bin", ...env },
  });
  const kill = (): void => killGroup(child);
  signal.addEventListener("abort", kill);
  if (signal.aborted) kill();
  const output = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const) {
    child[name].setEncoding("utf8").on("data", (text: string) => {
      output[name] = (output[name] + text).slice(0, OUTPUT_CHARACTERS_MAX);
      onOutput(text);
    });
  }
  try {
    const code = await new Promise<number | null>((resolve, reject) => {
      child.once("error", reject);
      child.once("close", resolve);
    });
    return { code, ...output };
  } finally {
    signal.removeEventListener("abort", kill);
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended.
  }
}
