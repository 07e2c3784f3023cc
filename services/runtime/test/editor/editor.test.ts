// `platform lsp` on examples/notes, driven as by an editor.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, afterEach, before, test, type TestContext } from "node:test";
import type {
  CompletionItem,
  DocumentSymbol,
  Location,
  TextEdit,
  WorkspaceEdit,
} from "../../src/editor/protocol.ts";
import { LineIndex } from "../../src/language/line-index.ts";
import { openEditor, type Editor } from "./editor.ts";

const folder = mkdtempSync(join(tmpdir(), "editor-"));
after(() => rmSync(folder, { recursive: true }));
const NOTES = join(folder, "notes");
cpSync(resolve(import.meta.dirname, "../../../../examples/notes"), NOTES, { recursive: true });
const MAIN = "main.service.ts";

interface HoverAnswer {
  contents: { value: string };
}

let editor: Editor;
let original = "";
before(async (t) => {
  editor = await openEditor(t as TestContext, NOTES);
  editor.open(MAIN);
  assert.deepEqual(await editor.diagnose(MAIN), []);
  original = editor.texts.get(MAIN)!;
});

afterEach(() => editor.setText(MAIN, original));

/** Edits the file for one test. */
function edit(from: string, to: string): void {
  editor.edit(MAIN, from, to);
}

async function complete(marked: string, file = MAIN): Promise<string[]> {
  const list = await editor.ask<{ items: CompletionItem[] }>("completion", file, marked);
  return list.items.map(({ label }) => label);
}

async function locate(method: string, marked: string, more?: object): Promise<string[]> {
  const found = await editor.ask<Location[]>(method, MAIN, marked, more);
  return found.map(({ uri, range }) => {
    const file = editor.nameOf(uri);
    return `${file}:${range.start.line + 1} ${file.startsWith("file:") ? "" : editor.read(file, range)}`;
  });
}

/** Edits by address. */
function listEdits({ changes, documentChanges = [] }: WorkspaceEdit): Record<string, TextEdit[]> {
  const entries = documentChanges.map((one) => [one.textDocument!.uri, one.edits!]);
  return (changes ?? Object.fromEntries(entries)) as Record<string, TextEdit[]>;
}

test("type errors are at the author's columns", async () => {
  edit("return assets(req);", "return assets(req.nothing);");
  const [line, ...others] = await editor.diagnose(MAIN);
  assert.match(line!, /^34:54 Property 'nothing' does not exist on type/);
  assert.deepEqual(others, []);
});

test("unfinished text leaves the rest of the file as it was", async () => {
  edit("return assets(req); }", "return assets(req.nothing); }");
  edit("return rows.map(show);", "rows.");
  const lines = await editor.diagnose(MAIN);
  assert.deepEqual(
    lines.map((line) => line.replace(/ on type.*/, "")),
    ["51:1 unexpected token", "34:54 Property 'nothing' does not exist"],
  );
  assert.ok((await complete("  rows.|")).includes("map"));
  const hover = await editor.ask<HoverAnswer>(
    "hover",
    MAIN,
    "await n|otes.run`update notes set reminded_at",
  );
  assert.match(hover.contents.value, /const notes: Database/);
});

test("a closing brace that is missing is one error", async () => {
  edit("  return rows.map(show);\n}", "  return rows.map(show);");
  const lines = await editor.diagnose(MAIN);
  assert.equal(lines.length, 1, lines.join("\n"));
});

test("definitions and references lead to the author's text", async () => {
  assert.deepEqual(await locate("definition", "await n|otes.all"), [`${MAIN}:8 notes`]);
  assert.deepEqual(await locate("definition", "= r|eadNote("), ["read-note.ts:16 readNote"]);
  const references = await locate("references", "database n|otes", {
    context: { includeDeclaration: true },
  });
  assert.deepEqual(
    references.map((line) => line.replace(/^.*:\d+ /, "")),
    Array.from({ length: 8 }, () => "notes"),
  );
});

test("a rename changes the author's names in all files", async () => {
  const change = await editor.ask<WorkspaceEdit>("rename", MAIN, "= r|eadNote(", {
    newName: "parseNote",
  });
  const edits = listEdits(change);
  const counts = Object.entries(edits).map(([uri, list]) => [editor.nameOf(uri), list.length]);
  assert.deepEqual(
    counts.sort(([a], [b]) => String(a).localeCompare(String(b))),
    [
      [MAIN, 2],
      ["main.test.ts", 3],
      ["read-note.ts", 1],
    ],
  );
  assert.match(editor.apply(MAIN, edits[editor.uriOf(MAIN)]!), /= parseNote\(req\.body/);
});

test("a renamed database keeps its file", async () => {
  const change = await editor.ask<WorkspaceEdit>("rename", MAIN, "database n|otes", {
    newName: "memos",
  });
  const edits = listEdits(change)[editor.uriOf(MAIN)]!;
  const text = editor.apply(MAIN, edits);
  assert.match(text, /^database memos \{ name: "notes", migrations: "\.\/migrations" \}$/m);
  assert.equal(text.match(/\bmemos\b/g)?.length, 8);
  editor.setText(MAIN, text);
  assert.deepEqual(await editor.diagnose(MAIN), []);
});

test("a rename to a reserved word, of a word of the language, and of the platform is refused", async () => {
  const rename = (marked: string, newName: string) =>
    editor.ask("rename", MAIN, marked, { newName });
  await assert.rejects(rename("= r|eadNote(", "class"), /class is a reserved word/);
  await assert.rejects(rename("= r|eadNote(", "a-b"), /expected a name/);
  await assert.rejects(rename("export r|oute GET / {", "path"));
  await assert.rejects(rename("return r|eply(await", "answer"), /would change|cannot rename/i);
});

test("suggestions are the language's words, the package's names, and nothing that was inserted", async () => {
  edit("// Notes\n", "\n\n// Notes\n");
  edit("\n\n\n// Notes\n", "\n\nx\n// Notes\n");
  edit("\nx\n// Notes", "\ne\n// Notes");
  const words = await complete("\ne|\n// Notes");
  for (const word of ["server", "database", "migrations", "cache", "export route", "every"]) {
    assert.ok(words.includes(word), word);
  }
  assert.deepEqual(
    words.filter((word) => word.startsWith("$")),
    [],
  );
  edit("\ne\n// Notes", "\nexport route G\n// Notes");
  assert.deepEqual(await complete("\nexport route G|\n"), [
    "GET",
    "POST",
    "PUT",
    "PATCH",
    "DELETE",
    "OPTIONS",
  ]);
  edit("\nexport route G\n", '\nexport route GET /x (req) requires "a" \n');
  assert.deepEqual(await complete('requires "a" |\n'), [
    "body",
    "query",
    "answer",
    "summary",
    "gateway",
  ]);
  assert.ok((await complete("server { p|ort")).includes("host?"));
});

test("a suggestion imports its name with a line at the top", async () => {
  edit("return auth.signIn();", "return webSo;");
  const list = await editor.ask<{ items: CompletionItem[] }>("completion", MAIN, "return webSo|;");
  const item = list.items.find(({ label }) => label === "webSocket");
  assert.ok(item !== undefined);
  const resolved = await editor.connection.request<CompletionItem>("completionItem/resolve", item);
  const text = editor.apply(MAIN, resolved.additionalTextEdits!);
  assert.match(text, /^import \{[^}]*reply, webSocket \} from "@platform\/service";$/m);
});

test("a quick fix imports a name", async () => {
  edit("return auth.signIn();", "return webSocket;");
  await editor.diagnose(MAIN, (lines) => lines.length === 1);
  const { diagnostics } = editor.published.get(MAIN)!;
  const { range } = diagnostics[0]!;
  const actions = await editor.askFile<{ title: string; edit: WorkspaceEdit }[]>(
    "codeAction",
    MAIN,
    {
      range,
      context: { diagnostics },
    },
  );
  const fix = actions.find(({ title }) => title.includes("import"));
  const edits = Object.values(fix?.edit.changes ?? {})[0] ?? fix?.edit.documentChanges?.[0]?.edits;
  assert.match(
    editor.apply(MAIN, edits!),
    /^import \{[^}]*webSocket \} from "@platform\/service";$/m,
  );
});

test("statements have errors, suggestions, definitions and row types", async () => {
  edit("where owner = ${id} order by id desc", "where ovner = ${id} order by id desc");
  const lines = await editor.diagnose(MAIN, (found) => found.length > 0);
  assert.deepEqual(lines, ["49:31 no such column: ovner"]);
  edit("where ovner", "where owner");
  const columns = await complete("from notes where o|wner = ${id} order by id desc");
  assert.ok(columns.includes("owner") && columns.includes("remind_at"));
  assert.ok(!columns.includes("assets"));
  assert.ok((await complete("select * from n|otes where owner")).includes("notes"));
  const [place] = await editor.ask<Location[]>("definition", MAIN, "from n|otes where owner");
  assert.equal(editor.nameOf(place!.uri), "migrations/0001-notes.sql");
  const hover = await editor.ask<HoverAnswer>("hover", MAIN, "from notes where o|wner");
  assert.match(hover.contents.value, /notes\.owner text not null/);
});

test("rows without a written type have that of their columns", async () => {
  edit("return note;", "return note.nothing;");
  edit("notes.one<Note>`select", "notes.one`select");
  const isTyped = (lines: string[]): boolean => lines.join().includes("owner: string");
  const [line] = await editor.diagnose(MAIN, isTyped);
  assert.match(
    line!,
    /^120:15 Property 'nothing' does not exist on type '\{ id: number; owner: string/,
  );
  const marked = "s|elect * from notes where id = ${id} and";
  const rows = await editor.ask<HoverAnswer>("hover", MAIN, marked);
  assert.match(rows.contents.value, /rows: \{ "id": number; "owner": string/);
});

test("symbols are the declarations with what is in them", async () => {
  const symbols = await editor.askFile<DocumentSymbol[]>("documentSymbol", MAIN);
  const names = symbols.map(({ name }) => name);
  assert.deepEqual(names.slice(names.indexOf("server")).slice(0, 4), [
    "server",
    "database notes",
    "Note",
    "CHANGES",
  ]);
  const list = symbols.find(({ name }) => name === "GET /api/notes");
  assert.deepEqual(
    list?.children?.map(({ name }) => name),
    ["id", "rows"],
  );
});

test("semantic colours cover the words of the language and the author's names", async () => {
  const { data } = await editor.askFile<{ data: number[] }>("semanticTokens/full", MAIN);
  const { legend } = editor.capabilities["semanticTokensProvider"] as {
    legend: { tokenTypes: string[] };
  };
  const lines = editor.texts.get(MAIN)!.split("\n");
  const found: string[] = [];
  let line = 0;
  let character = 0;
  for (let at = 0; at < data.length; at += 5) {
    line += data[at]!;
    character = data[at] === 0 ? character + data[at + 1]! : data[at + 1]!;
    const text = lines[line]!.slice(character, character + data[at + 2]!);
    found.push(`${text} ${legend.tokenTypes[data[at + 3]!]}`);
  }
  for (const token of [
    "server keyword",
    "notes variable",
    "route keyword",
    "every keyword",
    "requireUser method",
  ]) {
    assert.ok(found.includes(token), `${token}: ${found.join(", ")}`);
  }
  assert.ok(
    found.every((token) => /^[\w$#]+ \w+$/.test(token)),
    found.join(", "),
  );
});

test("hints and signatures are shown in bodies", async () => {
  const help = await editor.ask<{ signatures: { label: string }[] }>(
    "signatureHelp",
    MAIN,
    "readNote(|req.body",
  );
  assert.match(help.signatures[0]!.label, /^readNote\(/);
  const end = new LineIndex(editor.texts.get(MAIN)!).toPosition(1e9);
  const range = { start: { line: 0, character: 0 }, end };
  assert.ok(Array.isArray(await editor.askFile("inlayHint", MAIN, { range })));
  const folds = await editor.askFile<{ startLine: number; endLine: number }[]>(
    "foldingRange",
    MAIN,
  );
  assert.ok(
    folds.some(({ startLine }) => startLine === 30),
    JSON.stringify(folds),
  );
  edit("LIST_MAX = 200", "LIST_MAX = 201");
});

test("formatting changes bodies and heads, and only white space", async () => {
  edit(
    "export route GET /assets/* (req) { return assets(req); }",
    "export   route GET /assets/*   (req){ return assets( req ) }",
  );
  edit("  const rows = await", "const rows =    await");
  const edits = await editor.askFile<TextEdit[]>("formatting", MAIN, {
    options: { tabSize: 2, insertSpaces: true },
  });
  const text = editor.apply(MAIN, edits);
  assert.match(text, /^export route GET \/assets\/\* \(req\) \{ return assets\(req\) \}$/m);
  assert.match(text, /^ {2}const rows = await notes/m);
  const strip = (value: string): string => value.replaceAll(/\s/g, "");
  assert.equal(strip(text), strip(editor.texts.get(MAIN)!));
});

test("a plain file sees what a service file exports, and its changes", async () => {
  edit("database notes {", "export database notes {");
  writeFileSync(
    join(NOTES, "stored.ts"),
    'import { notes } from "./main.service.ts";\nexport const n: number = notes;\n',
  );
  editor.open("stored.ts");
  assert.deepEqual(await editor.diagnose("stored.ts", (lines) => lines.length > 0), [
    "2:14 Type 'Database' is not assignable to type 'number'. (TS2322)",
  ]);
  editor.edit(MAIN, "export database notes {", "database notes {");
  assert.match(
    (await editor.diagnose("stored.ts", (lines) => !lines[0]!.includes("Database"))).join(),
    /^1:10 .*declares 'notes' locally/,
  );
});
