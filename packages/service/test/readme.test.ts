// The examples of the README, executed.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { test, type TestContext } from "node:test";

const PACKAGE = resolve(import.meta.dirname, "..");
const blocks = Array.from(
  readFileSync(join(PACKAGE, "README.md"), "utf8").matchAll(/```(?:ts|sql)\n([^]*?)```/g),
  ([, text = ""]) => text,
);

/** Writes a block to the file that its first line names. */
function writeBlock(folder: string, name: string): string {
  const block = blocks.find((text) => new RegExp(`^(?://|--) ${name}\n`).test(text));
  assert.ok(block, `the README has a block ${name}`);
  const path = join(folder, name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, block);
  return path;
}

function createFolder(t: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "readme-"));
  t.after(() => rmSync(folder, { recursive: true }));
  mkdirSync(join(folder, "node_modules/@platform"), { recursive: true });
  symlinkSync(PACKAGE, join(folder, "node_modules/@platform/service"));
  symlinkSync(resolve(PACKAGE, "../../node_modules/zod"), join(folder, "node_modules/zod"));
  writeFileSync(join(folder, "package.json"), '{ "type": "module", "name": "@acme/notes" }');
  return folder;
}

test("the first example is a service that keeps its notes over a restart", async (t) => {
  const folder = createFolder(t);
  const main = writeBlock(folder, "main.ts");
  writeBlock(folder, "migrations/0001-notes.sql");
  const start = async () => {
    const env = {
      PATH: process.env["PATH"],
      NODE_COMPILE_CACHE: process.env["NODE_COMPILE_CACHE"],
      PORT: "0",
      PLATFORM_LOG_FORMAT: "json",
    };
    const child = spawn(process.execPath, [main], {
      cwd: folder,
      env,
      stdio: ["ignore", "pipe", "inherit"],
    });
    t.after(() => child.kill("SIGKILL"));
    for await (const line of createInterface({ input: child.stdout })) {
      const event = JSON.parse(line) as {
        msg: string;
        service: string;
        listeners: { port: number }[];
      };
      assert.equal(event.service, "notes");
      if (event.msg === "ready")
        return { child, url: `http://127.0.0.1:${event.listeners[0]!.port}` };
    }
    throw new Error("the service did not start");
  };
  const first = await start();
  const made = await fetch(`${first.url}/notes`, {
    method: "POST",
    // As `curl -d` sends it.
    headers: { "Content-Type": "application/x-www-form-urlencoded" },
    body: '{"text":"hello"}',
  });
  const note = (await made.json()) as { id: number; text: string };
  assert.equal(note.text, "hello");
  const missing = await fetch(`${first.url}/notes/99`);
  assert.equal(missing.status, 404);
  assert.equal(((await missing.json()) as { detail: string }).detail, "No such note");
  first.child.kill("SIGTERM");
  assert.deepEqual(await once(first.child, "exit"), [0, null]);
  const second = await start();
  const kept = await fetch(`${second.url}/notes/${note.id}`);
  assert.deepEqual(await kept.json(), note);
  second.child.kill("SIGTERM");
  await once(second.child, "exit");
});

test("the example of tests passes", async (t) => {
  const folder = createFolder(t);
  writeFileSync(
    join(folder, "routes.ts"),
    `import { route } from "@platform/service";\nroute("GET", "/hello/:name", ({ params }) => ({ hello: params.name }));\n`,
  );
  const file = writeBlock(folder, "main.test.ts");
  const { NODE_TEST_CONTEXT: _, ...env } = process.env;
  const child = spawn(process.execPath, ["--test", file], { cwd: folder, env, stdio: "ignore" });
  assert.deepEqual(await once(child, "exit"), [0, null]);
});

test("the example of schemas declares its routes", async (t) => {
  const folder = createFolder(t);
  const block = blocks.find((text) => text.includes("NewNote"))!;
  const file = join(folder, "schemas.ts");
  const ends = "const save = (..._: unknown[]) => {};\nconst list = (_: number) => [];\n";
  writeFileSync(file, `${block}\n${ends}`);
  const child = spawn(process.execPath, [file], { cwd: folder, stdio: "inherit" });
  assert.deepEqual(await once(child, "exit"), [0, null]);
});
