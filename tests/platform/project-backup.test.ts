// Databases and credentials of a project in backups of the platform that runs it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { loadManifest, writeBackup } from "@platform/kernel/backup";
import { anyPort, find, findStarted, makeFolder, run } from "@platform/testing/platform-process";

const SOURCE = `import { reply } from "@platform/service";
server { port: 3000 }
database items { migrations: "./migrations" }
export route PUT /items/:name (req) {
  const { name } = req.params;
  await items.run\`insert into item (name, body) values (\${name}, \${name.repeat(50)})\`;
  return reply("kept", { status: 201 });
}
export route GET /items { return items.all<{ name: string; body: string }>\`select name, body from item\`; }
`;

/** Starts a platform with the project in the folder. */
async function start(folder: string) {
  const flags = ["--only", "identity,shop", ...anyPort, "--project-addr", "127.0.0.1:0"];
  const up = run(["up", "--json", ...flags], {}, "", folder);
  const started = await up.waitFor(findStarted);
  const port = Number(new URL(find(started, "shop").url).port);
  const stop = async (): Promise<void> => {
    up.child.kill("SIGTERM");
    await up.exit;
  };
  return { port, stop };
}

/** The backup as versions wrote it in which the projects of a platform shared its data folder. */
async function writeOlder(backup: string, folder: string): Promise<void> {
  const { files, parts = [], service, service_version: version } = await loadManifest(backup);
  const options = { folder, service, version, dataFormat: 1, nowMs: Date.now() };
  await writeBackup(options, async (target) => {
    for (const { folder: part } of parts) {
      cpSync(join(backup, part), join(target.folder, part), { recursive: true });
      target.addPart(part, await loadManifest(join(backup, part)));
    }
    for (const { path } of files) {
      if (path === "projects.json") continue;
      const former = path.replace("projects/shop/", "");
      await target.addFile(former, join(backup, "data", path));
    }
    return {};
  });
}

test("a project's database and credentials are saved while it writes, and restored, also of an older layout", async () => {
  const root = makeFolder();
  const folder = join(root, "shop");
  const init = run(["init", "shop"], {}, "", root);
  assert.equal(await init.exit, 0, init.output().err);
  rmSync(join(folder, "migrations"), { recursive: true, force: true });
  mkdirSync(join(folder, "migrations"));
  writeFileSync(
    join(folder, "migrations/0001-items.sql"),
    "create table item (name text primary key, body text not null);\n",
  );
  writeFileSync(join(folder, "main.service.ts"), SOURCE);
  const first = await start(folder);
  const acknowledged: string[] = [];
  const over = new AbortController();
  const writing = (async () => {
    for (let number = 0; !over.signal.aborted; number += 1) {
      const { status, text } = await ask(first.port, "PUT", `/items/item-${number}`);
      assert.equal(status, 201, text);
      acknowledged.push(`item-${number}`);
    }
  })();
  while (acknowledged.length < 50) await Promise.race([writing, sleep(10)]);
  const before = [...acknowledged];
  const backup = join(root, "backup");
  const saved = await finish(folder, "backup", backup);
  assert.match(
    saved,
    /database shop\/items\.sqlite: saving\ndatabase shop\/items\.sqlite: [\d.]+ KiB/,
  );
  over.abort();
  await writing;
  await first.stop();
  const credentials = readFileSync(join(folder, "data/applications/shop.env"), "utf8");
  rmSync(join(folder, "data"), { recursive: true });

  await finish(folder, "restore", backup);
  assert.equal(readFileSync(join(folder, "data/applications/shop.env"), "utf8"), credentials);
  const second = await start(folder);
  const { text } = await ask(second.port, "GET", "/items");
  const rows = JSON.parse(text) as { name: string; body: string }[];
  const bodies = new Map(rows.map(({ name, body }) => [name, body]));
  for (const name of before) assert.equal(bodies.get(name), name.repeat(50), name);
  assert.equal((await ask(second.port, "PUT", "/items/later")).status, 201);
  await second.stop();

  const older = join(root, "older");
  await writeOlder(backup, older);
  rmSync(join(folder, "data"), { recursive: true });
  await finish(folder, "restore", older);
  assert.ok(existsSync(join(folder, "data/items.sqlite")), "as it was");
  const third = await start(folder);
  const moved = JSON.parse((await ask(third.port, "GET", "/items")).text) as { name: string }[];
  for (const name of before)
    assert.ok(
      moved.some((row) => row.name === name),
      name,
    );
  assert.ok(existsSync(join(folder, "data/projects/shop/items.sqlite")));
  assert.equal((await ask(third.port, "PUT", "/items/later")).status, 201);
  await third.stop();
});

async function finish(cwd: string, ...args: string[]): Promise<string> {
  const program = run(args, {}, "", cwd);
  const code = await program.exit;
  const { out, err } = program.output();
  assert.equal(code, 0, out + err);
  return out;
}

async function ask(
  port: number,
  method: string,
  path: string,
): Promise<{ status: number; text: string }> {
  const sent = request({ agent: false, host: "127.0.0.1", port, method, path });
  sent.end();
  const [answer] = (await once(sent, "response")) as [IncomingMessage];
  let text = "";
  for await (const chunk of answer.setEncoding("utf8")) text += String(chunk);
  return { status: answer.statusCode ?? 0, text };
}
