// Services on Bun: the plain API as a program, and the service language by `platform run`.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { after, test } from "node:test";
import { runPlatform, startProcess, stopRun } from "../fixture/run-process.ts";

const BUN = resolve(import.meta.dirname, "../../../../node_modules/@oven/bun-linux-x64/bin/bun");
const PLATFORM = resolve(import.meta.dirname, "../../../../bin/platform.js");
const skip = existsSync(BUN) ? false : "Bun is not installed";
const ON_BUN = { PLATFORM_RUNTIME: "bun" };
const root = mkdtempSync(join(tmpdir(), "bun-"));
const project = join(root, "notes");
after(() => rmSync(root, { recursive: true }));
runPlatform(root, "init", "notes", "--language");

const PLAIN = `import { database, events, files, route, server, webSocket, every } from "@platform/service";

const notes = database("notes", { migrations: "./migrations" }, import.meta.url);
route("POST", "/notes", ({ body }) => {
  const { text } = body as { text: string };
  return notes.one\`insert into notes (text, created_at) values (\${text}, 1) returning text\`;
});
route("GET", "/events", () => events(async function* () { yield { data: "now" }; }));
route("GET", "/socket", () => webSocket({ message: (socket, text) => socket.send(text) }));
route("GET", "/site/*", files("./public"));
every("250ms", () => console.log("tick"));
await server().start();
`;

test("the plain API works on Bun", { skip }, async (t) => {
  writeFileSync(join(project, "plain.ts"), PLAIN);
  mkdirSync(join(project, "public"));
  writeFileSync(join(project, "public/index.html"), "0123456789");
  const running = await startProcess(t, BUN, ["plain.ts"], project);
  await running.waitFor("tick");
  const body = JSON.stringify({ text: "stored" });
  const headers = { "Content-Type": "application/json" };
  const made = await fetch(`${running.url}/notes`, { method: "POST", headers, body });
  assert.deepEqual(await made.json(), { text: "stored" });
  assert.match(await (await fetch(`${running.url}/events`)).text(), /\ndata: now\n/);
  const part = await fetch(`${running.url}/site/`, { headers: { Range: "bytes=2-4" } });
  assert.equal(await part.text(), "234");
  const socket = new WebSocket(`${running.url.replace("http", "ws")}/socket`);
  socket.addEventListener("open", () => socket.send("echo"));
  const message = await new Promise((resolve, reject) => {
    socket.addEventListener("message", ({ data }) => resolve(data));
    socket.addEventListener("error", reject);
  });
  assert.equal(message, "echo");
  socket.close();
  await stopRun(running);
});

test("run and run --watch work on Bun, with the author's lines", { skip }, async (t) => {
  const file = join(project, "main.service.ts");
  const source = readFileSync(file, "utf8");
  const line = source.split("\n").length + 2;
  const failing = `${source}\nexport route GET /fail {\n  throw new Error("on purpose");\n}\n`;
  writeFileSync(file, failing);
  const running = await startProcess(
    t,
    process.execPath,
    [PLATFORM, "run", "--watch"],
    project,
    ON_BUN,
  );
  assert.equal((await fetch(`${running.url}/fail`)).status, 500);
  await running.waitFor(`main.service.ts:${line}:`);
  writeFileSync(file, "export route FETCH /fail { }\n");
  await running.waitFor("main.service.ts:1:14: expected an HTTP method");
  writeFileSync(file, `${source}\nexport route GET /second { return "second"; }\n`);
  await running.waitFor("reloaded");
  // The process before accepts connections until it has drained.
  const headers = { Connection: "close" };
  const endsMs = performance.now() + 60_000;
  for (let text = ""; text !== "second";) {
    assert.ok(performance.now() < endsMs, text);
    text = await (await fetch(`${running.url}/second`, { headers })).text();
  }
  await stopRun(running);
});

test("commands that need Node say so on Bun", { skip }, () => {
  for (const command of ["test", "build"]) {
    const { status, stderr } = spawnSync(process.execPath, [PLATFORM, command], {
      cwd: project,
      env: { PATH: process.env["PATH"], ...ON_BUN },
      encoding: "utf8",
    });
    assert.equal(status, 1, stderr);
    assert.match(stderr, /by Node only: unset PLATFORM_RUNTIME/);
  }
});
