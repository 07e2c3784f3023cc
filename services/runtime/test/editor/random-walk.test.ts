// A random walk of edits: the server answers everything, its positions are in the file, and it ends with the messages of
// `platform check`.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
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
const EDITS = Number(process.env["PLATFORM_EDITOR_EDITS"] ?? 60);
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

async function ask(editor: Editor, random: (max: number) => number): Promise<void> {
  const text = editor.texts.get(MAIN)!;
  const lines = new LineIndex(text);
  const method = METHODS[random(METHODS.length)]!;
  const position = lines.toPosition(random(text.length + 1));
  const answer = await editor.askFile(method, MAIN, { position });
  for (const found of listPositions(answer)) {
    const offset = lines.toOffset(found);
    assert.deepEqual(lines.toPosition(offset), found, `${method}: ${JSON.stringify(found)}`);
  }
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
  for (let count = 0; count < EDITS; count++) {
    edit(editor, random);
    // The text does not become noise alone.
    if (random(10) === 0) editor.setText(MAIN, original);
    if (random(3) === 0) await ask(editor, random);
  }
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
