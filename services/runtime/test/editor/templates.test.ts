// `platform lsp` on the projects that `platform init` creates.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import type { DocumentSymbol } from "../../src/editor/protocol.ts";
import { listFiles } from "../../src/editor/project-files.ts";
import { TEMPLATES } from "../../src/project/templates/index.ts";
import { runPlatform } from "../fixture/run-process.ts";
import { openEditor } from "./editor.ts";

const root = mkdtempSync(join(tmpdir(), "templates-"));
after(() => rmSync(root, { recursive: true }));

test("plain: no file has errors, statements are checked, and words of the language are not offered", async (t) => {
  const made = runPlatform(root, "init", "plain");
  assert.equal(made.status, 0, made.text);
  const folder = join(root, "plain");
  const editor = await openEditor(t, folder);
  for (const path of listFiles(folder, /\.ts$/)) {
    const file = path.slice(folder.length + 1);
    editor.open(file);
    assert.deepEqual(await editor.diagnose(file), [], file);
  }
  const main = "main.service.ts";
  editor.edit(main, "from notes order", "from nots order");
  const [line] = await editor.diagnose(main, (lines) => lines.length > 0);
  assert.match(line!, /no such table: nots/);
  editor.edit(main, "server({", "ev\nserver({");
  const position = editor.find(main, "ev|\nserver");
  const { items } = await editor.askFile<{ items: { label: string; insertText?: string }[] }>(
    "completion",
    main,
    { position },
  );
  const every = items.filter(({ label }) => label === "every");
  assert.equal(every.length, 1);
  assert.doesNotMatch(every[0]!.insertText ?? "", /\{/);
});

for (const template of Object.keys(TEMPLATES)) {
  test(`${template}: no file has errors, and the service has symbols`, async (t) => {
    const made = runPlatform(root, "init", template, "--template", template, "--language");
    assert.equal(made.status, 0, made.text);
    const folder = join(root, template);
    const editor = await openEditor(t, folder);
    for (const path of listFiles(folder, /\.ts$/)) {
      const file = path.slice(folder.length + 1);
      editor.open(file);
      assert.deepEqual(await editor.diagnose(file), [], file);
    }
    const main = "main.service.ts";
    const symbols = await editor.askFile<DocumentSymbol[]>("documentSymbol", main);
    assert.ok(symbols.some(({ name }) => name === "server"));
    // An import of a file that the editor does not have open.
    writeFileSync(join(folder, "more.service.ts"), "export cache more\n");
    editor.connection.notify("textDocument/didSave", { textDocument: { uri: editor.uriOf(main) } });
    editor.setText(
      main,
      `import { more } from "./more.service.ts";\n${readFileSync(join(folder, main), "utf8")}more.nothing;\n`,
    );
    const [line] = await editor.diagnose(main, (lines) => lines.length > 0);
    assert.match(line!, /Property 'nothing' does not exist on type 'Cache'/);
  });
}
