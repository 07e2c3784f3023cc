// A random walk of edits: the server answers everything in time, its positions are in the file, and it ends with the messages
// of `platform check`. It prints a table of times and of the memory of TypeScript's server.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import type { LinePosition } from "../../src/editor/protocol.ts";
import type { SourceProblem } from "../../src/language/source-problem.ts";
import { LineIndex } from "../../src/language/line-index.ts";
import { runPlatform } from "../fixture/run-process.ts";
import { openEditor, type Editor } from "./editor.ts";

const root = mkdtempSync(join(tmpdir(), "walk-"));
after(() => rmSync(root, { recursive: true }));
const MAIN = "main.service.ts";
const EDITS = Number(process.env["PLATFORM_EDITOR_EDITS"] ?? 100);
/** Longest wait for an answer: a server that hangs has none. */
const ANSWER_MS = 60_000;
/** Pieces of text that change the meaning of what follows. */
const PIECES = [
  "{",
  "}",
  "(",
  ")",
  "`",
  "${",
  '"',
  "'",
  "/*",
  "*/",
  "//",
  "/",
  "\\",
  "\n",
  "\r\n",
  ";",
  "😀",
  "export ",
  "route GET /x (req) {",
  "database x ",
  "every 5m ",
  "requires ",
  "req.",
  "notes.all`select * from ",
  "const a = 1",
  "import ",
];
const METHODS = [
  "hover",
  "hover",
  "completion",
  "completion",
  "definition",
  "documentSymbol",
  "semanticTokens/full",
  "foldingRange",
  "documentHighlight",
  "signatureHelp",
];

/** Numbers that are the same in each run (mulberry32). */
function createRandom(seed: number): (max: number) => number {
  let state = seed;
  return (max) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % max;
  };
}

/** All positions of an answer, except those of other files. */
function* listPositions(value: unknown): Generator<LinePosition> {
  if (typeof value !== "object" || value === null) return;
  if ("line" in value && "character" in value) yield value as LinePosition;
  else if (!("uri" in value) || String(value.uri).endsWith(MAIN)) {
    for (const one of Object.values(value)) yield* listPositions(one);
  }
}

function edit(editor: Editor, random: (max: number) => number): void {
  const { length } = editor.texts.get(MAIN)!;
  const start = random(length + 1);
  const isRemoval = random(2) === 0;
  const end = isRemoval ? Math.min(length, start + random(30)) : start;
  editor.replace(MAIN, start, end, isRemoval ? "" : PIECES[random(PIECES.length)]!);
}

/** Durations in ms by the name of what took them. */
class Times {
  readonly #taken = new Map<string, number[]>();

  async measure<Result>(name: string, work: () => Promise<Result>): Promise<Result> {
    const beganMs = performance.now();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(
      () => late.reject(new Error(`${name}: no answer within ${ANSWER_MS} ms`)),
      ANSWER_MS,
    );
    try {
      return await Promise.race([work(), late.promise]);
    } finally {
      clearTimeout(timer);
      const taken = this.#taken.get(name) ?? [];
      this.#taken.set(name, [...taken, performance.now() - beganMs]);
    }
  }

  format(): string[] {
    return [...this.#taken].map(([name, taken]) => {
      const sorted = taken.toSorted((a, b) => a - b);
      const at = (share: number): string =>
        sorted[Math.floor(share * (sorted.length - 1))]!.toFixed(1);
      return `${name.padEnd(22)} ${String(sorted.length).padStart(5)} p50 ${at(0.5).padStart(8)} ms  p95 ${at(0.95).padStart(8)} ms  max ${at(1).padStart(8)} ms`;
    });
  }
}

/** Proportional memory in MiB of the processes that a process has started, by program; empty where the system does not tell. */
function readMemory(parent: number): string[] {
  try {
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name))
      .flatMap((pid) => {
        const status = readFile(`/proc/${pid}/status`);
        if (Number(/^PPid:\s+(\d+)$/m.exec(status)?.[1]) !== parent) return [];
        const kib = Number(/^Pss:\s+(\d+)/m.exec(readFile(`/proc/${pid}/smaps_rollup`))?.[1]);
        return [`${/^Name:\s+(.*)$/m.exec(status)?.[1]} ${Math.round(kib / 1_024)} MiB`];
      });
  } catch {
    return [];
  }
}

// A process may end meanwhile.
function readFile(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

function checkPositions(value: unknown, text: string, what: string): void {
  const lines = new LineIndex(text);
  for (const found of listPositions(value)) {
    const offset = lines.toOffset(found);
    assert.deepEqual(lines.toPosition(offset), found, `${what}: ${JSON.stringify(found)}`);
  }
}

async function ask(editor: Editor, times: Times, random: (max: number) => number): Promise<void> {
  const text = editor.texts.get(MAIN)!;
  const lines = new LineIndex(text);
  const method = METHODS[random(METHODS.length)]!;
  const position = lines.toPosition(random(text.length + 1));
  const answer = await times.measure(method, () => editor.askFile(method, MAIN, { position }));
  checkPositions(answer, text, method);
}

test(`${EDITS} random edits end with the messages of check`, async (t) => {
  const folder = join(root, "notes");
  const notes = resolve(import.meta.dirname, "../../../../examples/notes");
  cpSync(notes, folder, { recursive: true });
  const seed = Number(process.env["PLATFORM_EDITOR_SEED"] ?? 7);
  t.diagnostic(`seed ${seed}`);
  const random = createRandom(seed);
  const editor = await openEditor(t, folder);
  editor.open(MAIN);
  const original = editor.texts.get(MAIN)!;
  const times = new Times();
  for (let count = 0; count < EDITS; count++) {
    edit(editor, random);
    // The text does not become noise alone.
    if (random(10) === 0) editor.setText(MAIN, original);
    if (random(3) === 0) await ask(editor, times, random);
    if (random(5) === 0) {
      await times.measure("diagnostics", () => editor.diagnose(MAIN));
      checkPositions(editor.published.get(MAIN), editor.texts.get(MAIN)!, "diagnostics");
    }
  }
  for (const line of times.format()) t.diagnostic(line);
  t.diagnostic(`memory: ${readMemory(editor.child.pid!).join(", ") || "unknown"}`);
  for (const [from, to] of [
    ["return assets(req);", "return assets(req.nothing);"],
    ["where owner = ${id} order", "where ovner = ${id} order"],
    ["every 5s", "every 5x"],
  ] as const) {
    editor.setText(MAIN, original);
    editor.edit(MAIN, from, to);
    writeFileSync(join(folder, MAIN), editor.texts.get(MAIN)!);
    const { text } = runPlatform(folder, "check", MAIN, "--json");
    const expected = (JSON.parse(text) as SourceProblem[]).map(
      ({ line, column, severity, message }) =>
        `${line}:${column} ${severity === "error" ? "" : "warning: "}${message}`,
    );
    assert.ok(expected.length > 0);
    const sort = (list: string[]): string[] => list.toSorted((a, b) => a.localeCompare(b));
    const found = await editor.diagnose(
      MAIN,
      (list) => list.length === expected.length && list.every((one) => expected.includes(one)),
    );
    assert.deepEqual(sort(found), sort(expected));
  }
});
