// Every file of a service's data folder × every fault: what was acknowledged is whole, or its loss is reported or refused.
import assert from "node:assert/strict";
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import type { TestContext } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { FILE_FAULTS, type FileFault } from "./file-faults.ts";
import { createRandom } from "./random.ts";

/** A service that runs on a folder. */
export interface FaultSubject {
  /** Stores more data; resolves when it is acknowledged. */
  write(round: number): Promise<void>;
  /** Everything that `write` has stored, as callers see it. Rejects if a request fails. */
  read(): Promise<unknown>;
  /** Faults as operators see them: log lines of warnings and errors, and the answer of readiness unless it is UP. */
  readReports(): Promise<string>;
  stop(): Promise<void>;
}

/** Options of {@link runFaultMatrix}. */
export interface FaultMatrixOptions {
  /** Starts the service on a folder. Rejects with what operators read if it refuses to start. */
  start(folder: string): Promise<FaultSubject>;
  /** Files that are no part of the service's data, such as its configuration. Default: none. */
  isForeign?(file: string): boolean;
}

/** State of the folder before the fault. */
type Ending = "stopped" | "killed";
type Verdict = "whole" | "reported" | "refused" | "SILENT";

interface Stage {
  ending: Ending;
  folder: string;
  /** An earlier state. */
  older: string;
  expected: unknown;
}

/** Rounds of the long form, which tries all cells; each round flips other bits. */
const ROUNDS = Number(process.env["PLATFORM_FAULT_ROUNDS"] ?? 0);
/** Chooses the cells of the short form. */
const SEED = Number(process.env["PLATFORM_FAULT_SEED"] ?? 0);
/** Of each ending. */
const SHORT_CELLS = 2;
const COLUMN = 11;
const REMEDY =
  /restor|fsck|repair|accept[-_]loss|\bremove\b|\bdelete\b|put .* back|\brun\b|\bset\b|complete it|correct the|move/i;

/** Runs the matrix, prints it, and asserts that no cell is silent. */
export async function runFaultMatrix(t: TestContext, options: FaultMatrixOptions): Promise<void> {
  const root = mkdtempSync(join(tmpdir(), "fault-matrix-"));
  t.after(() => rmSync(root, { recursive: true, force: true }));
  const stages = await makeStages(root, options);
  const silent: string[] = [];
  for (const stage of stages) {
    const files = listFiles(stage.folder).filter((file) => !(options.isForeign?.(file) ?? false));
    assert.ok(files.length > 0);
    const width = Math.max(...files.map((file) => file.length), 10) + 2;
    const chosen = chooseCells(files, stage.ending);
    for (let round = 0; round < Math.max(1, ROUNDS); round++) {
      const head = FILE_FAULTS.map(({ name }) => name.padEnd(COLUMN)).join("");
      const lines = [`${stage.ending.padEnd(width)}${head}`];
      for (const file of files) {
        const cells: string[] = [];
        for (const fault of FILE_FAULTS) {
          const isChosen = chosen.has(`${file} ${fault.name}`);
          const cell = isChosen ? await judge(root, stage, file, fault, round, options) : "";
          if (cell.startsWith("SILENT"))
            silent.push(`${stage.ending} ${file} ${fault.name}: ${cell}`);
          cells.push(cell.slice(0, COLUMN - 2).padEnd(COLUMN));
        }
        lines.push(`${file.padEnd(width)}${cells.join("")}`.trimEnd());
      }
      t.diagnostic(lines.join("\n"));
    }
    if (ROUNDS === 0) continue;
    const { verdict, detail } = await tryCell(root, stage, () => true, options);
    assert.equal(verdict, "whole", detail);
  }
  assert.deepEqual(silent, []);
}

// Of the short form: one fault for each file, another one for each ending, of files that the seed chooses.
function chooseCells(files: readonly string[], ending: Ending): ReadonlySet<string> {
  const all = files.flatMap((file) => FILE_FAULTS.map((fault) => `${file} ${fault.name}`));
  if (ROUNDS > 0) return new Set(all);
  const shift = ending === "killed" ? 0 : 3;
  const step = Math.max(1, files.length / SHORT_CELLS);
  const chosen = Array.from({ length: Math.min(files.length, SHORT_CELLS) }, (_, index) => {
    const file = Math.floor(index * step + SEED + shift) % files.length;
    const fault = (index + SEED + shift) % FILE_FAULTS.length;
    return all[file * FILE_FAULTS.length + fault]!;
  });
  return new Set(chosen);
}

// Data of two runs; the older copy is from the end of the first one.
async function makeStages(root: string, options: FaultMatrixOptions): Promise<Stage[]> {
  const [live, older, killed, stopped] = ["live", "older", "killed", "stopped"].map((name) =>
    join(root, name),
  ) as [string, string, string, string];
  mkdirSync(live);
  const first = await options.start(live);
  await first.write(1);
  await first.stop();
  cpSync(live, older, { recursive: true });
  const second = await options.start(live);
  await second.write(2);
  const expected = await second.read();
  // The files are the same after a SIGKILL: the system has what the process has written.
  cpSync(live, killed, { recursive: true });
  await second.stop();
  cpSync(live, stopped, { recursive: true });
  return [
    { ending: "killed", folder: killed, older, expected },
    { ending: "stopped", folder: stopped, older, expected },
  ];
}

async function judge(
  root: string,
  stage: Stage,
  file: string,
  fault: FileFault,
  round: number,
  options: FaultMatrixOptions,
): Promise<string> {
  const random = createRandom(round + 1);
  const damage = (folder: string): boolean =>
    fault.apply(join(folder, file), join(stage.older, file), random);
  const { verdict, detail } = await tryCell(root, stage, damage, options);
  if (verdict === undefined) return "–";
  if (verdict === "whole" || verdict === "SILENT") return `${verdict} ${detail}`.trim();
  // Of a database, any of its files may be named.
  const name = basename(file)
    .replace(/^\./, "")
    .replace(/(?:-wal|-shm|\.mark|\.sums|\.copy|-journal)$/, "");
  const isNamed = detail.includes(name);
  if (isNamed && REMEDY.test(detail)) return verdict;
  return `SILENT: ${verdict}, but ${isNamed ? "no remedy" : `${name} is not named`}: ${detail.slice(0, 600)}`;
}

async function tryCell(
  root: string,
  stage: Stage,
  damage: (folder: string) => boolean,
  options: FaultMatrixOptions,
): Promise<{ verdict: Verdict | undefined; detail: string }> {
  const folder = join(root, "cell");
  rmSync(folder, { recursive: true, force: true });
  cpSync(stage.folder, folder, { recursive: true });
  if (!damage(folder)) return { verdict: undefined, detail: "" };
  let subject: FaultSubject;
  try {
    subject = await options.start(folder);
  } catch (error) {
    return { verdict: "refused", detail: String(error) };
  }
  try {
    const found = await subject.read().catch((error: unknown) => error);
    if (isDeepStrictEqual(found, stage.expected)) {
      await subject.write(3);
      return { verdict: "whole", detail: "" };
    }
    const reports = await subject.readReports();
    if (reports !== "") return { verdict: "reported", detail: reports };
    return { verdict: "SILENT", detail: describe(found, stage.expected) };
  } catch (error) {
    const reports = await subject.readReports();
    return {
      verdict: reports === "" ? "SILENT" : "reported",
      detail: `${reports} ${String(error)}`,
    };
  } finally {
    await subject.stop();
  }
}

function describe(found: unknown, expected: unknown): string {
  const [one, other] = [found, expected].map((value) =>
    value instanceof Error ? String(value) : JSON.stringify(value),
  );
  return `found ${one?.slice(0, 300)}, expected ${other?.slice(0, 300)}`;
}

function listFiles(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((path) => relative(folder, join(folder, path)))
    .filter((path) => statSync(join(folder, path)).isFile())
    .sort();
}
