// The extension for Visual Studio Code: its archive, and its client, which is loaded from the archive and drives a real
// language server of a project.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { runInThisContext } from "node:vm";
import { crc32, inflateRawSync } from "node:zlib";
import { FakeEditor, Position, type FakeDocument } from "./fake-editor.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const root = mkdtempSync(join(tmpdir(), "extension-"));
/** Characters of patterns are those of the path. */
const work = join(root, "my [work] {1}");
const files = new Map<string, Buffer>();
after(() => rmSync(root, { recursive: true }));

function runNode(cwd: string, ...args: string[]): string {
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const run = spawnSync(process.execPath, args, { cwd, env, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout;
}

/** Reads an archive by its directory; compares checksums. */
function readZip(bytes: Buffer): [path: string, content: Buffer][] {
  const end = bytes.lastIndexOf("PK\u0005\u0006");
  let at = bytes.readUInt32LE(end + 16);
  return Array.from({ length: bytes.readUInt16LE(end + 10) }, () => {
    const [sum, packed, size] = [16, 20, 24].map((place) => bytes.readUInt32LE(at + place));
    const nameEnd = at + 46 + bytes.readUInt16LE(at + 28);
    const path = bytes.toString("utf8", at + 46, nameEnd);
    const local = bytes.readUInt32LE(at + 42);
    const start = local + 30 + bytes.readUInt16LE(local + 26) + bytes.readUInt16LE(local + 28);
    const content = inflateRawSync(bytes.subarray(start, start + packed!));
    assert.deepEqual([content.length, crc32(content)], [size, sum], path);
    at = nameEnd;
    return [path, content];
  });
}

before(() => {
  const write = (name: string): Buffer => {
    const out = join(root, name);
    const [, path = ""] = /^Written: (.*\.vsix) /.exec(
      runNode(REPOSITORY, "editors/build.ts", "--out", out),
    )!;
    return readFileSync(path);
  };
  const bytes = write("first");
  for (const [path, content] of readZip(bytes)) files.set(path, content);
  mkdirSync(work);
  const program = join(REPOSITORY, "bin/platform.js");
  runNode(work, program, "init", "plain");
  runNode(work, program, "init", "spoken", "--language");
});

test("the archive has the parts that the editor installs, and claims no file by its name", () => {
  const manifest = JSON.parse(files.get("extension/package.json")!.toString()) as {
    name: string;
    version: string;
    publisher: string;
    main: string;
    capabilities: { untrustedWorkspaces: { supported: unknown } };
    contributes: {
      languages: { extensions?: unknown; filenamePatterns?: unknown; configuration: string }[];
      grammars: { path: string }[];
      snippets: { path: string }[];
    };
  };
  const { version } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as {
    version: string;
  };
  assert.equal(manifest.version, version);
  const description = files.get("extension.vsixmanifest")!.toString();
  const identity = `Id="${manifest.name}" Version="${version}" Publisher="${manifest.publisher}"`;
  assert.ok(description.includes(identity), description);
  const assets = Array.from(description.matchAll(/ Path="([^"]+)"/g), ([, path]) => path!);
  const { languages, grammars, snippets } = manifest.contributes;
  const named = [manifest.main, languages[0]!.configuration, grammars[0]!.path, snippets[0]!.path];
  for (const path of [...assets, ...named.map((one) => join("extension", one))]) {
    assert.ok(files.has(path), path);
  }
  const types = files.get("[Content_Types].xml")!.toString();
  for (const path of files.keys()) {
    const ending = path.slice(path.lastIndexOf("."));
    assert.ok(path.startsWith("[") || types.includes(`Extension="${ending}"`), path);
  }
  for (const { extensions, filenamePatterns } of languages) {
    assert.deepEqual([extensions, filenamePatterns], [undefined, undefined]);
  }
  assert.equal(manifest.capabilities.untrustedWorkspaces.supported, "limited");
});

interface Extension {
  readonly activate: (context: { subscriptions: { dispose(): void }[] }) => void;
  readonly deactivate: () => Promise<void>;
}

/** Loads the script of the archive, as the editor does, with a fake of the editor. */
function load(editor: FakeEditor): Extension {
  const exported = { exports: {} };
  const require = createRequire(import.meta.url);
  const code = files.get("extension/extension.js")!.toString();
  const run = runInThisContext(`(function (module, exports, require) {${code}\n})`) as (
    ...parts: unknown[]
  ) => void;
  run(exported, exported.exports, (name: string) =>
    name === "vscode" ? editor.module : (require(name) as unknown),
  );
  return exported.exports as Extension;
}

const TOKEN = { isCancellationRequested: false, onCancellationRequested: () => undefined };
const WAIT_MS = 60_000;

/** Waits until a provider for the document is registered. */
async function waitForProvider(editor: FakeEditor, name: string, document: FakeDocument) {
  for (const endMs = performance.now() + WAIT_MS; performance.now() < endMs;) {
    const provider = editor.findProvider(name, document);
    if (provider !== undefined) return provider;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return assert.fail(`no ${name}: ${editor.output.join("\n")} ${editor.warnings.join("\n")}`);
}

/** Waits until these messages about the document are shown; those about statements come after the others. */
async function waitForMessages(
  editor: FakeEditor,
  { uri }: FakeDocument,
  expected: readonly string[],
): Promise<void> {
  const read = (): readonly string[] => editor.diagnostics.get(uri.fsPath) ?? [];
  const endMs = performance.now() + WAIT_MS;
  while (!isDeepStrictEqual(read(), expected) && performance.now() < endMs) {
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  assert.deepEqual(read(), expected);
}

function positionOf(text: string, marked: string): Position {
  const at = text.indexOf(marked.replace("|", "")) + marked.indexOf("|");
  const before = text.slice(0, at).split("\n");
  return new Position(before.length - 1, before.at(-1)!.length);
}

test("service files of the language get everything, plain files what concerns their SQL", async () => {
  const editor = new FakeEditor(work, false);
  const { activate, deactivate } = load(editor);
  activate({ subscriptions: [] });
  const open = (project: string, languageId: string): FakeDocument => {
    const path = join(work, project, "main.service.ts");
    const text = readFileSync(path, "utf8").replace("from notes order", "from nots order");
    return editor.open(path, languageId, `${text}export const n: number = "";\n`);
  };
  const spoken = open("spoken", "platform-service");
  const plain = open("plain", "typescript");
  const hover = "registerHoverProvider";
  // The workspace is not trusted yet.
  await new Promise((resolve) => setTimeout(resolve, 100));
  assert.equal(editor.providers.get(hover), undefined);
  editor.isTrusted = true;
  editor.fire("onDidGrantWorkspaceTrust", undefined);
  const show = async (document: FakeDocument, marked: string): Promise<string> => {
    const provider = await waitForProvider(editor, hover, document);
    const position = positionOf(document.text, marked);
    return JSON.stringify((await provider["provideHover"]!(document, position, TOKEN)) ?? null);
  };
  try {
    assert.match(await show(spoken, "note === unde|fined"), /undefined/);
    assert.match(await show(spoken, "from no|tes where id"), /CREATE TABLE notes/);
    assert.match(await show(plain, "from no|tes where id"), /CREATE TABLE notes/);
    assert.equal(await show(plain, "note === unde|fined"), "null");
    const wrong = "no such table: nots";
    const untyped = "Type 'string' is not assignable to type 'number'.";
    await waitForMessages(editor, spoken, [wrong, untyped]);
    await waitForMessages(editor, plain, [wrong]);
    const name = "registerRenameProvider";
    assert.ok(editor.findProvider(name, spoken) !== undefined);
    assert.equal(editor.findProvider(name, plain), undefined);
  } finally {
    await deactivate();
  }
});

test("a workspace without the dependency is left alone, and one without a program is told so once", async () => {
  const other = join(root, "other");
  cpSync(join(work, "plain"), other, {
    recursive: true,
    filter: (path) => !path.includes("node_modules"),
  });
  const path = join(other, "main.service.ts");
  const text = readFileSync(path, "utf8");
  const editor = new FakeEditor(other, true);
  const { activate, deactivate } = load(editor);
  activate({ subscriptions: [] });
  editor.open(path, "typescript", text);
  editor.open(join(other, "second.service.ts"), "typescript", text);
  assert.deepEqual(editor.warnings.length, 1);
  assert.match(editor.warnings[0]!, /run "npm ci" there/);
  const manifest = JSON.parse(readFileSync(join(other, "package.json"), "utf8")) as object;
  writeFileSync(join(other, "package.json"), JSON.stringify({ ...manifest, dependencies: {} }));
  const angular = new FakeEditor(other, true);
  load(angular).activate({ subscriptions: [] });
  angular.open(path, "typescript", text);
  assert.deepEqual([angular.warnings, [...angular.providers.keys()]], [[], []]);
  await deactivate();
});
