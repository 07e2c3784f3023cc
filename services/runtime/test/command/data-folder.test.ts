// Data folders in an unusual state.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { openDataFolder } from "../../src/data-folder/data-folder.ts";
import { anyPort, findStarted, makeFolder, parseEnv, run } from "../fixture/platform-process.ts";

test("a lost credentials.env is created again with a note, and passwords of users stay", async () => {
  const data = makeFolder();
  const path = join(data, "credentials.env");
  const first = run(["up", "--json", "--only", "identity", "--data", data, ...anyPort]);
  await first.waitFor(findStarted);
  first.child.kill("SIGTERM");
  assert.equal(await first.exit, 0);
  const before = parseEnv(readFileSync(path, "utf8"));
  rmSync(path);
  const doctor = run(["doctor", "--data", data, ...anyPort]);
  await doctor.exit;
  assert.match(doctor.output().out, /^fail +credentials: .*is missing\n +→ restore it/m);
  const second = run(["up", "--json", "--only", "identity", "--data", data, ...anyPort]);
  const line = await second.waitFor((text) =>
    text.split("\n").find((item) => item.startsWith('{"type":"started"')),
  );
  const { notes } = JSON.parse(line) as { notes: string[] };
  assert.ok(
    notes.some((note) => /credentials\.env.* was missing and has been created again/.test(note)),
    notes.join("\n"),
  );
  const after = parseEnv(readFileSync(path, "utf8"));
  assert.notEqual(after["PLATFORM_CLI_SECRET"], before["PLATFORM_CLI_SECRET"]);
  assert.equal(after["PLATFORM_AUTH_ADMIN_PASSWORD"], undefined);
  const add = run(["user", "add", "dora", "--data", data]);
  assert.equal(await add.exit, 0, "the new secret is registered");
  second.child.kill("SIGTERM");
  assert.equal(await second.exit, 0);
});

test("a folder of another user and a file in the way of one are explained", async (t) => {
  const base = makeFolder();
  const options = { version: "1.0.0", nowMs: 0, lock: undefined };
  const folder = join(base, "data");
  mkdirSync(folder);
  // Root may read everything.
  if (process.getuid?.() === 0) {
    chmodSync(base, 0o755);
    chmodSync(folder, 0o700);
    process.seteuid!("nobody");
    t.after(() => process.seteuid!(0));
  } else {
    chmodSync(folder, 0o000);
    t.after(() => chmodSync(folder, 0o700));
  }
  await assert.rejects(
    openDataFolder(folder, options),
    /no permission for ".*data\/platform\.lock": run as its owner \(uid \d+\), or choose another folder with --data/,
  );
  await assert.rejects(
    openDataFolder(join(folder, "below"), options),
    /no permission for ".*data\/below": run as its owner/,
  );
  const file = fileURLToPath(import.meta.url);
  for (const place of [file, join(file, "below")]) {
    await assert.rejects(
      openDataFolder(place, options),
      /" is not a folder: choose another one with --data/,
    );
  }
});

test("a folder of a newer version, a file and a clock that was set back are explained", async () => {
  const folder = makeFolder();
  const marker = join(folder, "platform.json");
  const future = Date.now() + 3_600_000;
  writeFileSync(marker, JSON.stringify({ format: 1, version: "1.9.0", seen_ms: 0 }));
  const newer = run(["up", "--data", folder, ...anyPort]);
  assert.equal(await newer.exit, 1);
  assert.match(
    newer.output().err,
    /was written by platform 1\.9\.0, and this is platform 1\.0\.0: install 1\.9\.0/,
  );

  const file = join(folder, "file");
  writeFileSync(file, "");
  const wrong = run(["up", "--data", file, ...anyPort]);
  assert.equal(await wrong.exit, 1);
  assert.match(wrong.output().err, /file" is not a folder: choose another one with --data/);

  writeFileSync(marker, JSON.stringify({ format: 1, version: "1.0.0", seen_ms: future }));
  mkdirSync(join(folder, "gate"));
  const late = run(["up", "--only", "sample", "--data", folder, ...anyPort]);
  await late.waitFor((text) => (/the clock is behind the last run/.test(text) ? true : undefined));
  late.child.kill("SIGTERM");
  assert.equal(await late.exit, 0);
});
