// Data folders in an unusual state.
import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { fileURLToPath } from "node:url";
import { writeBackup } from "@platform/kernel/backup";
import { lockFile } from "@platform/kernel/files";
import { DESCRIPTORS_MIN, readDescriptorLimit } from "@platform/kernel/sockets";
import { runDown } from "../../src/command/down.ts";
import { runStatus } from "../../src/command/status.ts";
import { findStopCommand } from "../../src/data-folder/running-process.ts";
import { openDataFolder } from "../../src/data-folder/data-folder.ts";
import {
  anyPort,
  findStarted,
  makeFolder,
  parseEnv,
  run,
} from "@platform/testing/platform-process";

const skip = process.platform === "linux" ? false : "processes are described by /proc of Linux";

test("a lost credentials.env is created again with a note, and passwords of users stay", async () => {
  const data = makeFolder();
  const path = join(data, "credentials.env");
  const first = run(["up", "--json", "--only", "identity", "--data", data, ...anyPort]);
  await first.waitFor(findStarted);
  first.child.kill("SIGTERM");
  assert.equal(await first.exit, 0);
  const before = parseEnv(readFileSync(path, "utf8"));
  rmSync(path);
  const limit = readDescriptorLimit();
  mkdirSync(join(data, "gate"));
  writeFileSync(join(data, "gate", "config.json"), '{"max_connections": 1000000}');
  const doctor = run(["doctor", "--data", data, ...anyPort]);
  await doctor.exit;
  assert.match(doctor.output().out, /^fail +credentials: .*is missing\n +→ restore it/m);
  if (limit !== undefined && limit >= DESCRIPTORS_MIN) {
    const shortage = `^warn +file descriptors: the limit is ${limit}, and max_connections 1000000 of the gateway.* needs \\d+\\n +→ raise it`;
    assert.match(doctor.output().out, new RegExp(shortage, "m"));
  }
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

test("restore says that its target is not empty before it reads the backup", async () => {
  const base = makeFolder();
  const folder = join(base, "backup");
  const data = join(base, "data");
  mkdirSync(data);
  writeFileSync(join(data, "precious"), "");
  const options = { folder, service: "platform", version: "1.0.0", dataFormat: 1, nowMs: 0 };
  await writeBackup(options, () => Promise.resolve({}));
  writeFileSync(join(folder, "stranger"), "not listed, which is found when the backup is read");
  const restore = run(["restore", folder, "--data", data]);
  assert.equal(await restore.exit, 1);
  assert.match(restore.output().err, /data is not empty; move it away to restore into it\n$/);
});

/** A data folder that this process has locked, whose last platform was `pid`. */
function holdFolder(t: TestContext, pid: number): string {
  const data = makeFolder();
  t.after(lockFile(join(data, "platform.lock")));
  const state = { pid, version: "1.0.0", started_at: "2030-01-02T03:04:05Z", services: [] };
  writeFileSync(join(data, "running.json"), JSON.stringify(state));
  return data;
}

test(
  "down leaves a program alone that has the number of the last platform",
  { skip },
  async (t) => {
    const other = spawn("sleep", ["600"]);
    t.after(() => other.kill("SIGKILL"));
    const data = holdFolder(t, other.pid!);
    const down = run(["down", "--data", data]);
    assert.equal(await down.exit, 1);
    assert.match(
      down.output().err,
      new RegExp(
        `^platform: the data folder \\S+ is in use by process ${process.pid} \\(\\S+\\), which is not a running platform yet; process ${other.pid}, the number of its last platform, is now sleep and was left alone: if it is starting, try again when it runs; if it does not, end it with kill ${process.pid}\n$`,
      ),
    );
    assert.equal(other.exitCode ?? other.signalCode, null);
  },
);

const isRoot = process.getuid?.() === 0;

test(
  "down names the user of a platform that this user may not stop, and status the owner of its folder",
  { skip: skip || (!isRoot && "needs processes of two users") },
  async (t) => {
    const other = spawn("sleep", ["600"], { uid: 1, gid: 1 });
    t.after(() => other.kill("SIGKILL"));
    const data = holdFolder(t, other.pid!);
    chmodSync(data, 0o755);
    chmodSync(join(data, "platform.lock"), 0o666);
    await asNobody(() =>
      assert.rejects(
        runDown({ data, timeoutMs: 1_000 }),
        new RegExp(
          `^Error: process ${other.pid} belongs to the user with the id 1 \\(sleep\\), and you may not stop it: sudo -u '#1' .*platform down --data `,
        ),
      ),
    );
    chmodSync(data, 0o700);
    await asNobody(() =>
      assert.rejects(
        runStatus({ data, json: false }),
        /no permission for ".*running\.json": run as its owner \(uid 0\)/,
      ),
    );
  },
);

async function asNobody(work: () => Promise<void>): Promise<void> {
  process.seteuid!("nobody");
  try {
    await work();
  } finally {
    process.seteuid!(0);
  }
}

test("a platform that systemd started is found, with the command that stops its unit", () => {
  const proc = makeFolder();
  const describe = (pid: number, parent: number, group: string, main: number): void => {
    mkdirSync(join(proc, String(pid)));
    const write = (name: string, text: string) => writeFileSync(join(proc, `${pid}`, name), text);
    write("environ", `PATH=/bin\0SYSTEMD_EXEC_PID=${main}\0`);
    write("status", `Name:\tnode\nPPid:\t${parent}\n`);
    write("cgroup", `0::${group}\n`);
  };
  describe(10, 1, "/system.slice/platform.service", 10);
  assert.equal(findStopCommand(10, proc), "systemctl stop platform.service");
  const own = "/user.slice/user-1000.slice/user@1000.service/app.slice/platform.service";
  describe(20, 1, own, 20);
  describe(21, 20, own, 20);
  assert.equal(findStopCommand(21, proc), "systemctl --user stop platform.service", "by npm");
  describe(30, 1, "/user.slice/user-1000.slice/session-3.scope", 8);
  assert.equal(findStopCommand(30, proc), undefined, "in a terminal");
  assert.equal(findStopCommand(40, proc), undefined);
});
