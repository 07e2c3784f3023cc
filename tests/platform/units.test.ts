// The units of systemd in deploy/: as the guide shows them, confined, and with everything working under their confinement.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import {
  anyPort,
  findStarted,
  formatRun,
  makeFolder,
  parseEnv,
  runCommand,
} from "@platform/testing/platform-process";
import { Clients, signIn, type Running, type Writable } from "./continuous-writes.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));
const deploy = join(root, "deploy");
const UNITS = ["platform.service", "platform-backup.service", "platform-backup.timer"];
const launcher = fileURLToPath(new URL("units/filtered.py", import.meta.url));
const NOBODY = 65_534;
/** Of `systemd-analyze security`: 0 is confined, 10 is not. */
const EXPOSURE_MAX = 2;

const hasSystemd = spawnSync("systemd-analyze", ["--version"]).status === 0;
const isRequired = process.env["PLATFORM_TEST_PEERS"] === "required";
const skip = hasSystemd || isRequired ? false : "the Debian package systemd is not installed";
const admin = { username: "root", password: "correct horse battery staple" };

function readUnit(name: string): string {
  return readFileSync(join(deploy, name), "utf8");
}

test("the guide shows the units word by word", () => {
  const guide = readFileSync(join(root, "docs/guide/production.md"), "utf8");
  for (const name of UNITS) {
    assert.ok(guide.includes(`\`\`\`ini\n${readUnit(name)}\`\`\``), `${name} is not in the guide`);
  }
});

test("services are confined", { skip }, () => {
  for (const name of UNITS.filter((unit) => unit.endsWith(".service"))) {
    const { stdout } = spawnSync(
      "systemd-analyze",
      ["security", "--no-pager", "--offline=true", join(deploy, name)],
      { encoding: "utf8" },
    );
    const [, exposure] = /Overall exposure level .*: ([\d.]+)/.exec(stdout) ?? [];
    assert.ok(Number(exposure) <= EXPOSURE_MAX, `${name}: ${exposure}\n${stdout}`);
  }
});

/** Without the privileges of root, if other users may read this checkout. */
const user = process.getuid!() === 0 && isReadable(root) ? NOBODY : process.getuid!();

function isReadable(folder: string): boolean {
  const parent = dirname(folder);
  const { mode } = statSync(folder);
  return (mode & 0o005) === 0o005 && (parent === folder || isReadable(parent));
}

/** Runs a command line as a unit confines it. */
function runConfined(unit: string, command: readonly string[], variables: Record<string, string>) {
  const env = { ...variables, FILTERED_USER: String(user) };
  return runCommand(["python3", launcher, join(deploy, unit), ...command], { env, cwd: root });
}

// The command of a unit as systemd passes it to the shell.
function readBackupCommand(): string[] {
  const [, script] = /^ExecStart=\/bin\/sh -c '(.*)'$/m.exec(readUnit("platform-backup.service"))!;
  assert.ok(script!.startsWith("exec ./platform backup "));
  return ["/bin/sh", "-c", script!.replaceAll("%%", "%")];
}

async function finish(command: ReturnType<typeof runCommand>): Promise<string> {
  const code = await command.exit;
  const { out, err } = command.output();
  assert.equal(code, 0, out + err);
  return out + err;
}

function makeOwnFolder(base: string, name: string): string {
  const folder = join(base, name);
  mkdirSync(folder, { mode: 0o700 });
  if (user !== process.getuid!()) chownSync(folder, user, user);
  return folder;
}

test(
  "all services work with the unit's system calls, and the nightly backup too",
  { skip },
  async () => {
    const base = makeFolder();
    chmodSync(base, 0o755);
    const data = makeOwnFolder(base, "data");
    const backups = makeOwnFolder(base, "backups");
    const credentials = makeOwnFolder(base, "credentials");
    writeFileSync(join(credentials, "passphrase"), "an encrypted backup of everything\n");
    const env = {
      HOME: base,
      TMPDIR: makeOwnFolder(base, "tmp"),
      PLATFORM_DATA_DIR: data,
      PLATFORM_AUTH_ADMIN_USER: admin.username,
      PLATFORM_AUTH_ADMIN_PASSWORD: admin.password,
    };
    const up = runConfined("platform.service", formatRun("up", "--json", ...anyPort), env);
    const started = await up.waitFor(findStarted);
    const file = parseEnv(readFileSync(join(data, "credentials.env"), "utf8"));
    const running: Running = { started, credentials: new Map(Object.entries(file)) };
    const clients = new Clients(running, await signIn(running, admin));
    await clients.createBucket();
    const services: readonly Writable[] = ["identity", "messaging", "storage", "mail", "tunnel"];
    for (const service of services) {
      const written = await clients.write(service, 1);
      assert.deepEqual(await clients.read(service, [written.id]), [written], service);
    }
    await finish(runConfined("platform.service", formatRun("status"), env));
    // The data folder is open to the platform's user only, and so is the status of its services.
    await finish(runConfined("platform.service", formatRun("doctor"), env));

    const unit = { STATE_DIRECTORY: backups, CREDENTIALS_DIRECTORY: credentials };
    const backup = runConfined("platform-backup.service", readBackupCommand(), { ...env, ...unit });
    const said = await finish(backup);
    assert.match(said, /complete, in/);
    assert.doesNotMatch(said, /not encrypted/);
    const [folder = ""] = readdirSync(backups);
    assert.match(folder, /^20\d\d-\d\d-\d\dT\d{6}$/);
    const checked = ["--passphrase-file", join(credentials, "passphrase"), "--dry-run"];
    const empty = ["--data", join(base, "empty"), ...checked];
    const restore = formatRun("restore", join(backups, folder), ...empty);
    assert.match(await finish(runCommand(restore, {})), /intact/);
    const metrics = await (await fetch(`${started.api_url}/metrics`)).text();
    const [, completed] =
      /^platform_backup_completed_timestamp_seconds (\S+)$/m.exec(metrics) ?? [];
    assert.ok(Math.abs(Number(completed) - Date.now() / 1_000) < 600, metrics);

    up.child.kill("SIGTERM");
    assert.equal(await up.exit, 0, up.output().err);
  },
);
