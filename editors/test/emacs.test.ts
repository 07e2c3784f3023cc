// Emacs with the lines of the guide, in a new project of the language.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { readBlocks } from "../../tests/guides/page.ts";
import { findProgram, readProgramVersion } from "../../tests/stage/program.ts";
import { environment, locate, makeNotes, type Target } from "./project.ts";

const SCRIPT = fileURLToPath(new URL("emacs.el", import.meta.url));
const TIMEOUT_MS = 240_000;
/** The first one with the mode of the guide. */
const RECENT = 29;

const isMissing = findProgram("emacs") === undefined;
const skip = isMissing ? "emacs is not installed: tools/install-peers editors" : false;
const root = realpathSync(mkdtempSync(join(tmpdir(), "emacs-")));
after(() => rmSync(root, { recursive: true }));

test("hover, definitions and messages in Emacs, by the lines of the guide", { skip }, () => {
  const project = makeNotes(root);
  const { text } = readBlocks("editor.md").find(({ language }) => language === "lisp")!;
  const [major] = readProgramVersion("emacs", ["--version"])!.split(".").map(Number);
  // As the guide says of Emacs 28.
  const lines = major! >= RECENT ? text : text.replaceAll("typescript-ts-mode", "js-mode");
  const init = join(root, "init.el");
  writeFileSync(init, lines);
  const result = join(root, "result.json");
  // Started in another folder than that of the project, as from a menu.
  const args = ["--batch", "-l", init, "-l", SCRIPT];
  const run = spawnSync("emacs", args, {
    cwd: root,
    env: { ...environment, HOME: root, RESULT: result, FILE: join(project, "main.service.ts") },
    encoding: "utf8",
    timeout: TIMEOUT_MS,
  });
  assert.equal(run.status, 0, run.stderr);
  assert.ok(!run.stderr.includes("unsupported capability"), run.stderr);
  const { hover, definition, table, messages } = JSON.parse(readFileSync(result, "utf8")) as {
    hover: object;
    definition: Target[];
    table: Target[];
    messages: string[];
  };
  assert.match(JSON.stringify(hover), /const notes: Database/);
  assert.equal(locate(definition), "main.service.ts:4");
  assert.equal(locate(table), "0001-notes.sql:1");
  assert.deepEqual(
    messages.map((line) => line.replace(/^\d+: (?:\w+(?: \[\w+\])?: )?/, "")),
    ["Type 'typeof HttpError' is not assignable to type 'number'.", "no such column: nowhere"],
  );
});
