// A project from an empty folder: init, check, test, run.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { runPlatform, startRun, stopRun } from "../fixture/run-process.ts";
import { checkByStockCompiler } from "../fixture/stock-compiler.ts";

const root = mkdtempSync(join(tmpdir(), "project-"));
const project = join(root, "notes");
after(() => rmSync(root, { recursive: true }));

test("init creates a project that checks, passes its tests and runs", async (t) => {
  const made = runPlatform(root, "init", "notes");
  // The first one after a change of the sources packs them.
  assert.deepEqual(
    { ...made, text: made.text.replace(/^Packing .*\n/m, "") },
    {
      status: 0,
      text: "Created notes.\n\n  cd notes\n  ./platform run --watch\n  ./platform up    joins a platform that runs, or starts one\n",
    },
  );
  mkdirSync(join(root, "filled"));
  writeFileSync(join(root, "filled/file"), "");
  assert.match(
    runPlatform(root, "init", "filled").text,
    /filled is not empty; choose another name/,
  );
  assert.match(runPlatform(root, "init", "Not es").text, /expected a name of lower-case letters/);
  assert.deepEqual(runPlatform(project, "check"), {
    status: 0,
    text: "2 files: no errors\n",
  });
  checkByStockCompiler(project);
  const tested = runPlatform(project, "test");
  assert.equal(tested.status, 0, tested.text);
  assert.ok(!existsSync(join(project, "data")), "tests leave no data");
  const running = await startRun(t, project);
  const answer = await fetch(`${running.url}/notes`, {
    method: "POST",
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    body: '{"text":"hello"}',
  });
  assert.equal(((await answer.json()) as { text: string }).text, "hello");
  await stopRun(running);
});

test("a test that does not stop its service ends, and one without the service says what is missing", () => {
  runPlatform(root, "init", "careless");
  const folder = join(root, "careless");
  const lines = (start: string) => `import { test } from "node:test";
import { startTestService } from "@platform/service/testing";
${start}
test("an answer", async () => void (await (await startTestService()).fetch("/notes")).text());
`;
  writeFileSync(join(folder, "open.test.ts"), lines('import "./main.service.ts";'));
  writeFileSync(join(folder, "bare.test.ts"), lines(""));
  const open = runPlatform(folder, "test", "open.test.ts");
  assert.equal(open.status, 0, open.text);
  const bare = runPlatform(folder, "test", "bare.test.ts");
  assert.equal(bare.status, 1);
  assert.match(bare.text, /no route and no schedule is declared; import the service first/);
});

test("convert writes a project of the language as plain TypeScript, and replaces nothing unasked", () => {
  assert.equal(runPlatform(root, "init", "spoken", "--language").status, 0);
  const spoken = join(root, "spoken");
  const main = join(spoken, "main.service.ts");
  const source = readFileSync(main, "utf8");
  assert.match(source, /^export route GET \/notes/m);
  assert.match(
    readFileSync(join(spoken, ".vscode/settings.json"), "utf8"),
    /"\*\.service\.ts": "platform-service"/,
  );
  const convert = (...args: string[]) =>
    runPlatform(spoken, "convert", "main.service.ts", "--to", "plain", ...args);
  const plain = readFileSync(join(project, "main.service.ts"), "utf8");
  assert.deepEqual(convert(), { status: 0, text: plain });
  assert.match(convert("--out", "main.test.ts").text, /main\.test\.ts exists; choose another name/);
  assert.match(convert("--out", "../other.service.ts").text, /is in another folder/);
  assert.equal(readFileSync(main, "utf8"), source);
  assert.deepEqual(convert("--write"), { status: 0, text: "Written: main.service.ts\n" });
  assert.equal(readFileSync(main, "utf8"), plain);
  assert.match(convert("--write").text, /main\.service\.ts:1:1: .* it is plain already/);
  assert.equal(convert("--write").status, 1);
});

test("a clone of a project has no platform until init installs it; nothing of it changes", () => {
  runPlatform(root, "init", "shared");
  const clone = join(root, "clone");
  cpSync(join(root, "shared"), clone, {
    recursive: true,
    filter: (path) => !path.includes("node_modules"),
  });
  const text = `${readFileSync(join(clone, "package.json"), "utf8")}\n`;
  writeFileSync(join(clone, "package.json"), text);
  const start = () =>
    spawnSync(join(clone, "platform"), ["--version"], { cwd: root, encoding: "utf8" });
  const refused = start();
  assert.equal(refused.status, 1);
  assert.match(refused.stderr, /run "npm ci" in this folder/);
  for (let round = 0; round < 2; round += 1) {
    assert.deepEqual(runPlatform(clone, "init", "."), {
      status: 0,
      text: "Installed the platform in this project.\n\n  ./platform run --watch\n  ./platform up    joins a platform that runs, or starts one\n",
    });
    assert.match(start().stdout, /^platform 1\./);
  }
  assert.equal(readFileSync(join(clone, "package.json"), "utf8"), text);
});

test("check reports declarations and types at the author's column, as text and as JSON", () => {
  const file = join(root, "bad.service.ts");
  writeFileSync(
    file,
    "const n: number = 1;\nexport route GET /x/:id (req) { return n + req.params.nope }\n",
  );
  const [problem] = JSON.parse(runPlatform(root, "check", "bad.service.ts", "--json").text) as {
    message: string;
  }[];
  assert.match(problem!.message, /Property 'nope' does not exist/);
  assert.deepEqual(
    { ...problem, message: "" },
    {
      path: "bad.service.ts",
      line: 2,
      column: 55,
      severity: "error",
      message: "",
    },
  );
  writeFileSync(file, "server { }\nserver { }\n");
  assert.match(
    runPlatform(root, "check", "bad.service.ts").text,
    /^bad\.service\.ts:2:1: a service has one server/,
  );
});

test("run reports errors at the author's line, and handlers' stacks in the log", async (t) => {
  const file = join(root, "fail.service.ts");
  writeFileSync(file, 'import "./missing.ts";\nexport route GET / { }\n');
  const missing = runPlatform(root, "run", "fail.service.ts");
  assert.equal(missing.status, 1);
  assert.match(missing.text, /missing\.ts/);
  writeFileSync(
    file,
    `export route GET / () requires "a" {
  return null;
}
server { timeoutMs: 500 }
export route GET /throws {

  throw new Error("x");
}
export route GET /rejects {
  await 1;
  throw new Error("y");
}
export route GET /never { await new Promise(() => {}); }
export route GET /wrong { return () => 1; }
export route GET /text { throw "z"; }
`,
  );
  const running = await startRun(t, root, "fail.service.ts");
  const lines = { throws: "7:9", rejects: "11:9", never: "13:1", wrong: "14:1", text: "15:1" };
  for (const [path, position] of Object.entries(lines)) {
    const answer = await fetch(`${running.url}/${path}`);
    assert.equal(answer.status, 500, path);
    const { trace_id: traceId } = (await answer.json()) as { trace_id: string };
    const line = await running.waitFor(`"trace_id":"${traceId}"`);
    assert.match(line, new RegExp(`"msg":"request failed".*fail\\.service\\.ts:${position}`));
  }
  await stopRun(running);
});

test("a missing import is reported at its line", () => {
  const cases = [
    ["not-there", "the package not-there is not installed: npm install not-there"],
    ["@platform/not-there", "the platform has no package @platform/not-there"],
    ["./not-there.ts", "there is no file ./not-there.ts"],
  ];
  for (const [specifier, message] of cases) {
    const source = `server { port: 0 }\nimport x from "${specifier}";\nexport route GET / { return x }\n`;
    writeFileSync(join(root, "missing.service.ts"), source);
    const { status, text } = runPlatform(root, "run", "missing.service.ts");
    assert.equal(status, 1);
    assert.ok(text.includes(`missing.service.ts:2:15: ${message}\n`), text);
  }
});
