// The pages "One sign-in for all services", "Operate", "Editors", "Several nodes" and "Backup and restore", at one platform.
import assert from "node:assert/strict";
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { anyPort, find, findStarted, makeFolder, run } from "@platform/testing/platform-process";
import { readCommands } from "./page.ts";
import { skipWithout, typeCommands, type Terminal } from "./terminal.ts";

const skip = skipWithout(["bash", "curl", "jq", "openssl", "tar"]);
const folder = makeFolder();
const upArgs = ["up", "--json", "--data", join(folder, "data"), ...anyPort];
let up: ReturnType<typeof run>;
let terminal: Terminal;

async function start(): Promise<void> {
  up = run(upArgs);
  const started = await up.waitFor(findStarted);
  const portOf = (name: string): string => new URL(find(started, name).url).port;
  const ports = [
    ["8080", portOf("gate")],
    ["8082", portOf("pulse")],
    ["8086", portOf("auth")],
  ] as const;
  terminal = { folder, ports };
}

before(async () => {
  if (skip === false) await start();
});
after(async () => {
  if (skip !== false) return;
  up.child.kill("SIGTERM");
  await up.exit;
});

test("access: a user without rights is refused, and a role gives them", { skip }, async () => {
  const commands = readCommands("access.md").join("\n");
  const [, publish = ""] = /^(curl .*publish)$/m.exec(commands) ?? [];
  const signIn = /^token=.*$/m.exec(commands)?.[0] ?? "";
  const out = await typeCommands([commands, signIn, publish].join("\n"), terminal);
  assert.match(out, /"status":403,"detail":"[^"]*pulse:publish/);
  assert.match(out, /"message_id":"[^"]+"[^\n]*$/, "the last publication is accepted");
});

test("operate: an application", { skip }, async () => {
  await typeCommands(readCommands("operate.md").join("\n"), terminal);
  assert.equal(statSync(join(folder, "notes.env")).mode & 0o777, 0o600);
});

test("editors and several nodes", { skip }, async () => {
  assert.match(await typeCommands(readCommands("editor.md").join("\n"), terminal), /platform lsp/);
  await typeCommands(readCommands("several-nodes.md").join("\n"), terminal);
  assert.equal(statSync(join(folder, "identity.env")).mode & 0o777, 0o600);
});

test("backups: saved, encrypted, restored, and one service alone", { skip }, async () => {
  const [save = "", encrypt = "", restore = "", single = ""] = readCommands("backups.md");
  await typeCommands([save, encrypt, single].join("\n"), terminal);
  assert.ok(readdirSync(join(folder, "backup")).length > 0);
  assert.ok(existsSync(join(folder, "backups/2026-11-23")));
  const last = restore.trim().split("\n").at(-1)!;
  assert.equal(last, "./platform up --data ./data");
  // The last command stays in the foreground.
  await typeCommands(restore.replace(last, ""), terminal);
  await up.exit;
  await start();
  const text = await typeCommands(
    'curl -s -H "content-type: application/json" -d \'{"username":"ada","password":"a fine long password"}\' localhost:8086/api/v1/auth/login',
    terminal,
  );
  assert.match(text, /"access_token"/, "the user of before is there");
});
