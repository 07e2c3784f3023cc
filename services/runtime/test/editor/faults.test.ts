// `platform lsp` with what editors and authors do wrong, and with a TypeScript that ends.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import type { CompletionItem, Location } from "../../src/editor/protocol.ts";
import { openEditor, type Editor } from "./editor.ts";

const root = mkdtempSync(join(tmpdir(), "faults-"));
after(() => rmSync(root, { recursive: true }));
const MAIN = "main.service.ts";

function createFolder(name: string, text: string): string {
  const folder = join(root, name);
  mkdirSync(folder);
  writeFileSync(join(folder, MAIN), text);
  return folder;
}

/** Process ids of the children of a process. */
function listChildren({ child }: Editor): number[] {
  const found = execFileSync("ps", ["-o", "pid=", "--ppid", String(child.pid)], {
    encoding: "utf8",
  });
  return found.trim().split(/\s+/).map(Number);
}

test("lines that end with CRLF, and characters outside the BMP, keep positions exact", async (t) => {
  const text = [
    "const face = '😀';",
    "/* 😀 */ export route GET /a/:id (req) { /* 😀 */ return req.params.nope; }",
    "export route GET /x (req) { return '😀' + face + req.nope; }",
    "",
  ].join("\r\n");
  const editor = await openEditor(t, createFolder("characters", text));
  editor.open(MAIN);
  const lines = await editor.diagnose(MAIN, (found) => found.length > 0);
  assert.deepEqual(
    lines.map((line) => line.replace(/ does not exist.*/, "")),
    ["2:69 Property 'nope'", "3:54 Property 'nope'"],
  );
  const [place] = await editor.ask<Location[]>("definition", MAIN, "'😀' + f|ace");
  assert.deepEqual(place?.range, {
    start: { line: 0, character: 6 },
    end: { line: 0, character: 10 },
  });
});

test("a TypeScript that is killed is started again with the documents", async (t) => {
  const editor = await openEditor(
    t,
    createFolder("killed", "export route GET / (req) { return req.nope; }\n"),
  );
  editor.open(MAIN);
  await editor.diagnose(MAIN, (found) => found.length === 1);
  const [pid] = listChildren(editor);
  editor.edit(MAIN, "req.nope", "req.nix");
  process.kill(pid!, "SIGKILL");
  const lines = await editor.diagnose(MAIN, (found) => found.join().includes("nix"));
  assert.match(lines[0]!, /^1:39 Property 'nix'/);
  assert.notDeepEqual(listChildren(editor), [pid]);
});

test("edits faster than answers end with the messages about the last text", async (t) => {
  const editor = await openEditor(
    t,
    createFolder("fast", "export route GET / (req) { return req.a; }\n"),
  );
  editor.open(MAIN);
  const answers: Promise<unknown>[] = [];
  for (let round = 0; round < 100; round++) {
    const [name = ""] = /req\.\w+/.exec(editor.texts.get(MAIN)!)!;
    editor.edit(MAIN, name, `req.a${round}`);
    answers.push(editor.ask<{ items: CompletionItem[] }>("completion", MAIN, "return req.|"));
  }
  const lines = await editor.diagnose(MAIN, (found) => found.length > 0);
  assert.match(lines[0]!, /^1:39 Property 'a99'/);
  await Promise.all(answers);
});

test("a cancelled request is answered, and later ones as well", async (t) => {
  const editor = await openEditor(
    t,
    createFolder("cancelled", "export route GET / (req) { return req.path; }\n"),
  );
  editor.open(MAIN);
  const requests = Array.from({ length: 20 }, () => {
    const params = {
      textDocument: { uri: editor.uriOf(MAIN) },
      position: editor.find(MAIN, "req.|path"),
    };
    return editor.connection.request("textDocument/completion", params, AbortSignal.abort());
  });
  const settled = await Promise.allSettled(requests);
  for (const one of settled) {
    if (one.status === "rejected") assert.match(String(one.reason), /cancel/i);
  }
  const hover = await editor.ask<{ contents: unknown }>("hover", MAIN, "return r|eq");
  assert.match(JSON.stringify(hover.contents), /ServiceRequest/);
});

test("an editor that pulls messages is told when to pull again", async (t) => {
  const folder = createFolder(
    "pulled",
    'database notes { migrations: "./migrations" }\nexport route GET / { return notes.all`select * from nodes`; }\n',
  );
  mkdirSync(join(folder, "migrations"));
  writeFileSync(
    join(folder, "migrations/0001-notes.sql"),
    "create table notes (id integer primary key);",
  );
  const editor = await openEditor(t, folder, {
    capabilities: {
      workspace: { diagnostics: { refreshSupport: true } },
      textDocument: { diagnostic: {} },
    },
  });
  editor.open(MAIN);
  const pull = async (): Promise<string[]> => {
    const { items } = await editor.askFile<{ items: { message: string }[] }>("diagnostic", MAIN);
    return items.map(({ message }) => message);
  };
  const pullUntil = async (expected: string[]): Promise<void> => {
    for (;;) {
      // A refresh during the pull is about later messages.
      editor.requested.length = 0;
      if (isDeepStrictEqual(await pull(), expected)) return;
      await editor.waitForRequest("workspace/diagnostic/refresh");
    }
  };
  await pullUntil(["no such table: nodes"]);
  writeFileSync(
    join(folder, "migrations/0002-nodes.sql"),
    "create table nodes (id integer primary key);",
  );
  const changes = [{ uri: editor.uriOf("migrations/0002-nodes.sql"), type: 1 }];
  editor.connection.notify("workspace/didChangeWatchedFiles", { changes });
  await pullUntil([]);
  assert.equal(editor.published.size, 0);
});

test("wrong messages are answered with the protocol's errors", async (t) => {
  const editor = await openEditor(t, createFolder("wrong", "export route GET / { return 1; }\n"));
  const { connection } = editor;
  await assert.rejects(connection.request("initialize", {}), /initialize is repeated/);
  await assert.rejects(connection.request("textDocument/unknown", {}), { code: -32_601 });
  await assert.rejects(editor.askFile("documentSymbol", "missing.ts"), { code: -32_602 });
  await assert.rejects(connection.request("textDocument/hover", null), { code: -32_602 });
  editor.open(MAIN);
  const uri = editor.uriOf(MAIN);
  const position = { line: 1e9, character: -5 };
  await connection.request("textDocument/hover", { textDocument: { uri }, position });
  const range = { start: { line: 99, character: 9 }, end: { line: 0, character: 0 } };
  connection.notify("textDocument/didChange", {
    textDocument: { uri, version: 2 },
    contentChanges: [
      { range, text: "" },
      { range: null, text: "x" },
    ],
  });
  connection.notify("textDocument/didOpen", {});
  connection.notify("textDocument/didClose", { textDocument: { uri: "file://%" } });
  connection.notify("textDocument/didChange", 1);
  assert.ok(Array.isArray(await editor.askFile("documentSymbol", MAIN)));
});

test("a project of 200 service files and one of 20 000 lines stays usable", async (t) => {
  const folder = createFolder("large", "");
  for (let file = 0; file < 200; file++) {
    writeFileSync(
      join(folder, `f${file}.service.ts`),
      `export cache c${file}\nexport route GET /${file} (req) { return c${file}.get(req.path); }\n`,
    );
  }
  const routes = Array.from(
    { length: 4_000 },
    (_, index) =>
      `// route ${index}\nexport route GET /r/${index} (req) {\n  const n: number = ${index};\n  return { n, path: req.path };\n}\n`,
  );
  writeFileSync(
    join(folder, MAIN),
    `import { c7 } from "./f7.service.ts";\n${routes.join("")}export const last: number = c7;\n`,
  );
  const editor = await openEditor(t, folder);
  editor.open(MAIN);
  const lines = await editor.diagnose(MAIN, (found) => found.length > 0);
  assert.deepEqual(lines, ["20002:14 Type 'Cache' is not assignable to type 'number'. (TS2322)"]);
  editor.edit(MAIN, "const n: number = 3999;", "const n: string = 3999;");
  const changed = await editor.diagnose(MAIN, (found) => found.length > 1);
  assert.match(changed[0]!, /^19999:9 Type 'number' is not assignable to type 'string'/);
});
