// The templates `web` and `worker` in plain TypeScript: created, checked, tested, run, built. Those in the language are opened in an
// editor by another test.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { checkByStockCompiler } from "../fixture/stock-compiler.ts";
import { runPlatform, startProcess, startRun, stopRun } from "../fixture/run-process.ts";

const root = mkdtempSync(join(tmpdir(), "templates-"));
after(() => rmSync(root, { recursive: true }));

/** On a connection of its own: one that was used before belongs to the process of its time. */
const get = (url: string) => fetch(url, { headers: { Connection: "close" } });

/** Creates a project that has no errors and passes its tests. */
function create(template: string): string {
  const made = runPlatform(root, "init", template, "--template", template);
  assert.equal(made.status, 0, made.text);
  const project = join(root, template);
  assert.ok(readFileSync(join(project, "README.md"), "utf8").split("\n").length <= 13);
  const checked = runPlatform(project, "check");
  assert.match(checked.text, /^\d files: no errors\n$/);
  assert.equal(checked.status, 0);
  checkByStockCompiler(project);
  const tested = runPlatform(project, "test");
  assert.equal(tested.status, 0, tested.text);
  return project;
}

test("web: a page with its files, reloaded, and inside an executable", async (t) => {
  const project = create("web");
  const watched = await startRun(t, project, "--watch");
  assert.match(await (await get(watched.url)).text(), /<title>web<\/title>/);
  assert.deepEqual(await (await get(`${watched.url}/api/me`)).json(), {
    hasIdentity: false,
    name: null,
  });
  const file = join(project, "main.service.ts");
  const source = readFileSync(file, "utf8");
  writeFileSync(file, source.replace("/api/me", "/api/whoami"));
  await watched.waitFor("reloaded");
  // Until it has ended, the former process may take a connection, too.
  let status = 0;
  while (status !== 200) {
    ({ status } = await get(`${watched.url}/api/whoami`));
    assert.ok([200, 404].includes(status), String(status));
  }
  await stopRun(watched);

  const built = runPlatform(project, "build");
  assert.equal(built.status, 0, built.text);
  // Started where the project's files are not.
  const running = await startProcess(t, join(project, "dist/web"), [], root);
  assert.match(await (await get(running.url)).text(), /<title>web<\/title>/);
  const style = await get(`${running.url}/style.css`);
  assert.equal(style.headers.get("content-type"), "text/css; charset=utf-8");
  assert.match(await style.text(), /color-scheme/);
  await stopRun(running);
});

test("worker: schedules without routes run with --watch", async (t) => {
  const project = create("worker");
  const file = join(project, "main.service.ts");
  const source = readFileSync(file, "utf8");
  const counting = (step: number): string =>
    `${source}\nevery("250ms", () => console.log("tick by ${step}"));\n`;
  writeFileSync(file, counting(1));
  const watched = await startRun(t, project, "--watch");
  await watched.waitFor("tick by 1");
  assert.equal((await get(`${watched.url}/readyz`)).status, 200);
  writeFileSync(file, counting(2));
  await watched.waitFor("tick by 2");
  await stopRun(watched);
  assert.deepEqual(
    readdirSync(join(project, "data")).filter((name) => name.endsWith(".sqlite")),
    ["jobs.sqlite"],
  );
});

test("an unknown template is refused with the names of the others", () => {
  const { status, text } = runPlatform(root, "init", "x", "--template", "x");
  assert.equal(status, 2);
  assert.match(text, /api.*web.*worker/);
});
