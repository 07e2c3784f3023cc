// Dumps: copies of a database in use as a file, by SQLite's online backup or by PostgreSQL's own programs.
import { execFile } from "node:child_process";
import { backup, DatabaseSync } from "node:sqlite";
import { promisify } from "node:util";
import { DatabaseError } from "./error.ts";

const run = promisify(execFile);

/** All pages in one step: a backup in several steps starts again whenever another connection writes. */
const PAGES_PER_STEP = 2 ** 31 - 1;
const BUSY_TIMEOUT_MS = 10_000;
const PROGRAM_MS_MAX = 3_600_000;
const OUTPUT_BYTES_MAX = 1024 * 1024;

/** Options of `dumpDatabase` and `loadDump`. */
export interface DumpOptions {
  /** As for `openDatabase`; a PostgreSQL URL for `loadDump`. */
  url: string;
  /** Path of the dump; the file must not exist before. */
  file: string;
}

/**
 * Copies a database in use: everything committed before the call, and nothing partial. On SQLite the copy is a database
 * file. On PostgreSQL it is an archive of `pg_dump`, which must be installed and not older than the server, with the
 * tables that match `tables`, such as `auth_*`. Throws a DatabaseError.
 */
export async function dumpDatabase(
  options: DumpOptions & { tables: readonly string[] },
): Promise<void> {
  const { url, file, tables } = options;
  if (!isPostgres(url)) {
    await copySqlite(url.slice("sqlite:".length), file);
    return;
  }
  const only = tables.map((pattern) => `--table=${pattern}`);
  const form = ["--format=custom", "--no-owner", "--no-privileges", "--no-password"];
  await runProgram("pg_dump", url, [...form, ...only, `--file=${file}`]);
}

/** Loads an archive of `pg_dump` into a PostgreSQL database without these tables; all of it or nothing. */
export async function loadDump({ url, file }: DumpOptions): Promise<void> {
  const form = ["--single-transaction", "--exit-on-error", "--no-owner", "--no-privileges"];
  await runProgram("pg_restore", url, [...form, "--no-password", file]);
}

async function copySqlite(path: string, file: string): Promise<void> {
  const source = new DatabaseSync(path, { readOnly: true, timeout: BUSY_TIMEOUT_MS });
  try {
    await backup(source, file, { rate: PAGES_PER_STEP });
  } finally {
    source.close();
  }
}

// The password is passed in the environment: all users can read the arguments of processes.
async function runProgram(program: string, url: string, args: readonly string[]): Promise<void> {
  const { shown, password } = takePassword(url);
  const env = { ...process.env, ...(password === undefined ? {} : { PGPASSWORD: password }) };
  const limits = { timeout: PROGRAM_MS_MAX, maxBuffer: OUTPUT_BYTES_MAX };
  try {
    await run(program, [`--dbname=${shown}`, ...args], { env, ...limits });
  } catch (cause) {
    const { code, stderr = "" } = cause as { code?: unknown; stderr?: string };
    if (code === "ENOENT") {
      throw new DatabaseError(
        "other",
        `${program} is not installed; install the PostgreSQL client of the server's version or a newer one`,
        { cause },
      );
    }
    const reason = stderr.trim().split("\n").slice(0, 3).join("; ");
    throw new DatabaseError("other", `${program} failed: ${reason || String(cause)}`, { cause });
  }
}

function takePassword(url: string): { shown: string; password: string | undefined } {
  let password: string | undefined;
  const take = (text: string) => {
    password = decodeURIComponent(text);
    return "";
  };
  const shown = url
    .replace(/^(\w+:\/\/[^:/?#@]*):([^/?#@]*)@/, (_, start: string, text: string) => {
      take(text);
      return `${start}@`;
    })
    .replace(/(?<=[?&])password=([^&]*)&?/, (_, text: string) => take(text));
  return { shown, password };
}

function isPostgres(url: string): boolean {
  return /^postgres(?:ql)?:\/\//.test(url);
}
