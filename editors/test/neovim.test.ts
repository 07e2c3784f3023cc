// Neovim with the lines of the guide, in a new project of the language; and what it sends, replayed where it is missing.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Connection } from "../../services/runtime/src/editor/connection.ts";
import { readBlocks } from "../../tests/guides/page.ts";
import { findProgram, readProgramVersion } from "../../tests/stage/program.ts";
import { environment as env, locate, makeNotes, PLATFORM, type Target } from "./project.ts";

/** Messages of Neovim 0.7 during the script, one a line, with the folder as FOLDER. With PLATFORM_RECORD=1 it is written. */
const TRAFFIC = new URL("fixtures/neovim-0.7.jsonl", import.meta.url);
const SCRIPT = fileURLToPath(new URL("neovim.lua", import.meta.url));
const TIMEOUT_MS = 120_000;
const MIGRATION =
  "create table notes (\n  id integer primary key,\n  text text not null,\n  created_at bigint not null\n);\n";

const MESSAGES = [
  "Type 'typeof HttpError' is not assignable to type 'number'.",
  "no such column: nowhere",
];

const isMissing =
  findProgram("nvim") === undefined && process.env["PLATFORM_TEST_PEERS"] !== "required";
const skip = isMissing ? "nvim is not installed" : false;
const root = realpathSync(mkdtempSync(join(tmpdir(), "neovim-")));
after(() => rmSync(root, { recursive: true }));

/** The messages of a stream of the protocol. */
function readMessages(bytes: Buffer): { id?: number; method?: string; params?: unknown }[] {
  const found: object[] = [];
  for (let at = 0; at < bytes.length;) {
    const end = bytes.indexOf("\r\n\r\n", at);
    const length = Number(/Content-Length: (\d+)/i.exec(bytes.toString("utf8", at, end))![1]);
    found.push(JSON.parse(bytes.toString("utf8", end + 4, end + 4 + length)) as object);
    at = end + 4 + length;
  }
  return found;
}

function record(project: string, traffic: string): void {
  const lines = readMessages(readFileSync(traffic))
    .filter(({ method }) => method !== undefined)
    .map((message) => JSON.stringify(message).replaceAll(project, "FOLDER"));
  const text = lines.join("\n").replaceAll(/"processId":\d+/g, '"processId":null');
  writeFileSync(TRAFFIC, `${text}\n`);
}

test("hover, definitions and messages in Neovim, by the six lines of the guide", { skip }, () => {
  const project = makeNotes(root);
  const [recent, old] = readBlocks("editor.md").filter(({ language }) => language === "lua");
  const [major, minor] = readProgramVersion("nvim", ["--version"])!.split(".").map(Number);
  const lines = major! > 0 || minor! >= 11 ? recent! : old!;
  assert.equal(lines.text.trimEnd().split("\n").length, 6);
  writeFileSync(join(root, "init.lua"), lines.text);
  const traffic = join(root, "traffic");
  if (process.env["PLATFORM_RECORD"] !== undefined) {
    const program = `#!/bin/sh\ntee ${traffic} | node_modules/.bin/platform "$@"\n`;
    writeFileSync(join(project, "platform"), program);
  }
  const result = join(root, "result.json");
  const args = ["--headless", "-n", "-i", "NONE", "-u", join(root, "init.lua")];
  const run = spawnSync("nvim", [...args, "-c", `luafile ${SCRIPT}`, "main.service.ts"], {
    cwd: project,
    env: { ...env, RESULT: result, XDG_STATE_HOME: root, XDG_DATA_HOME: root },
    encoding: "utf8",
    timeout: TIMEOUT_MS,
  });
  assert.equal(run.status, 0, run.stderr);
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
    messages.map((line) => line.replace(/^\d+/, "LINE")),
    [
      "LINE:7: Type 'typeof HttpError' is not assignable to type 'number'.",
      "LINE:24: no such column: nowhere",
    ],
  );
  if (process.env["PLATFORM_RECORD"] !== undefined) record(project, traffic);
});

test("the messages of Neovim are answered in the same way without it", async (t) => {
  const folder = join(root, "replayed");
  mkdirSync(join(folder, "migrations"), { recursive: true });
  writeFileSync(join(folder, "migrations/0001-notes.sql"), MIGRATION);
  const child = spawn(process.execPath, [PLATFORM, "lsp"], {
    cwd: folder,
    env,
    stdio: ["pipe", "pipe", "inherit"],
  });
  t.after(() => child.kill());
  const published = Promise.withResolvers<string[]>();
  const connection = new Connection({
    input: child.stdout,
    output: child.stdin,
    onRequest: (method, params) =>
      method === "workspace/configuration"
        ? (params as { items: unknown[] }).items.map(() => null)
        : null,
    onNotification: (_method, params) => {
      const { diagnostics = [] } = params as {
        diagnostics?: { severity: number; message: string }[];
      };
      const errors = diagnostics.filter(({ severity }) => severity === 1);
      const texts = errors.map(({ message }) => message);
      // Those about statements come after the others.
      if (texts.some((text) => text.includes("nowhere"))) published.resolve(texts);
    },
    onClose: () => {},
  });
  const answers = new Map<string, unknown[]>();
  const lines = readFileSync(TRAFFIC, "utf8").trimEnd().replaceAll("FOLDER", folder).split("\n");
  for (const line of lines) {
    const { id, method, params } = JSON.parse(line) as {
      id?: number;
      method: string;
      params: unknown;
    };
    if (method === "shutdown") {
      const messages = await published.promise;
      assert.deepEqual(messages.toSorted(), MESSAGES);
    }
    if (id === undefined) connection.notify(method, params);
    else {
      const answer = await connection.request(method, params);
      answers.set(method, [...(answers.get(method) ?? []), answer]);
    }
  }
  const [code] = (await once(child, "exit")) as [number];
  assert.equal(code, 0);
  assert.match(JSON.stringify(answers.get("textDocument/hover")), /const notes: Database/);
  const found = answers.get("textDocument/definition") as Target[][];
  assert.deepEqual(found.map(locate), ["main.service.ts:4", "0001-notes.sql:1"]);
});
