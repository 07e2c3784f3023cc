// `platform backup` and `restore`: the data directory is lost, and everything acknowledged before is back.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import {
  cpSync,
  existsSync,
  globSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseEnv } from "node:util";
import { emptyDatabase, findPostgresSkip, startPostgresCluster } from "@platform/kernel/db-testing";
import {
  ask,
  askStorage,
  Clients,
  ContinuousWrites,
  signIn,
  type Acknowledged,
  type Running,
  type Writable,
} from "./continuous-writes.ts";
import { anyPort, find, findStarted, makeFolder, run } from "@platform/testing/platform-process";

const admin = { username: "root", password: "correct horse battery staple" };
const identity = {
  PLATFORM_AUTH_ADMIN_USER: admin.username,
  PLATFORM_AUTH_ADMIN_PASSWORD: admin.password,
};
const passphrase = "an encrypted backup of everything";

async function start(
  data: string,
  flags: readonly string[] = anyPort,
  env: Record<string, string> = {},
) {
  const up = run(["up", "--json", "--data", data, ...flags], { ...identity, ...env });
  const started = await up.waitFor(findStarted);
  const credentials = new Map(
    readFileSync(join(data, "credentials.env"), "utf8")
      .split("\n")
      .filter((line) => line.includes("=") && !line.startsWith("#"))
      .map((line) => line.split("=", 2) as [string, string]),
  );
  const stop = async (): Promise<void> => {
    up.child.kill("SIGTERM");
    assert.equal(await up.exit, 0, up.output().out);
  };
  return { started, credentials, stop, up };
}

async function finish(
  args: string[],
  env: Record<string, string> = {},
): Promise<{ code: unknown; text: string }> {
  const command = run(args, env);
  const code = await command.exit;
  const { out, err } = command.output();
  return { code, text: out + err };
}

/** Creates an application with a bucket, and returns its access key. */
async function addApplication(data: string): Promise<{ id: string; secret: string }> {
  const command = run(["app", "add", "shop", "--bucket", "shop-files", "--data", data]);
  assert.equal(await command.exit, 0, command.output().err);
  const env = parseEnv(command.output().out);
  return { id: env["AWS_ACCESS_KEY_ID"]!, secret: env["AWS_SECRET_ACCESS_KEY"]! };
}

// Tokens and passkeys belong to the origin of identity.
function keepIdentity(flags: readonly string[], { started }: Running): string[] {
  const { port } = new URL(find(started, "auth").url);
  return flags.with(flags.indexOf("--auth-addr") + 1, `127.0.0.1:${port}`);
}

const ALL: readonly Writable[] = ["identity", "messaging", "storage", "mail", "tunnel"];

async function requireAll(
  clients: Clients,
  written: Record<Writable, readonly Acknowledged[]>,
): Promise<void> {
  for (const [service, items] of Object.entries(written) as [Writable, Acknowledged[]][]) {
    if (items.length === 0) continue;
    const ids = items.map(({ id }) => id);
    assert.deepEqual(await clients.read(service, ids), items, service);
  }
}

test("everything acknowledged before a backup under load is restored after the data directory is lost", async (t) => {
  const base = makeFolder();
  const data = join(base, "data");
  const backup = join(base, "backup");
  const secretFile = join(base, "passphrase");
  writeFileSync(secretFile, `${passphrase}\n`);
  const encrypted = ["--passphrase-file", secretFile];
  const first = await start(data);
  // A new passkey replaces the tokens of the session that adds it.
  const passkey = await new Clients(first, await signIn(first, admin)).addPasskey();
  const tokens = await signIn(first, admin);
  const clients = new Clients(first, tokens);
  await clients.createBucket();
  const key = await addApplication(data);
  const receipt = { path: "/shop-files/receipt", body: "paid" };
  assert.equal((await askStorage(first, key, { method: "PUT", ...receipt })).status, 200);
  const writes = new ContinuousWrites(clients, ALL);
  await writes.waitFor(20);
  const before = writes.copy();
  const startedMs = performance.now();
  const saved = await finish(["backup", backup, "--data", data, ...encrypted]);
  const savedMs = performance.now() - startedMs;
  assert.equal(saved.code, 0, saved.text);
  assert.match(
    saved.text,
    /identity: saving[^]*messaging: saving[^]*storage: saving[^]*mail: saving[^]*tunnel: saving[^]*complete, in/,
  );
  assert.doesNotMatch(saved.text, /not encrypted/);
  await writes.stop();

  const twice = await finish(["backup", backup, "--data", data]);
  assert.match(twice.text, /backup is not empty/);
  const taken = await finish(["restore", backup, "--data", data, ...encrypted]);
  assert.match(taken.text, /data is not empty; move it away/);
  await first.stop();
  const late = await finish(["backup", join(base, "late"), "--data", data]);
  assert.match(late.text, /the platform is not running with .*data/);
  rmSync(data, { recursive: true });

  for (const path of globSync("**/*", { cwd: backup })) {
    const mode = statSync(join(backup, path)).mode & 0o077;
    assert.equal(mode, 0, `${path} is readable by others`);
  }
  const restoreMs = performance.now();
  const restored = await finish(["restore", backup, "--data", data, ...encrypted]);
  const counts = ALL.map((name) => `${name} ${before[name].length}`).join(", ");
  t.diagnostic(
    `${counts}; saved in ${Math.round(savedMs)} ms, restored in ${Math.round(performance.now() - restoreMs)} ms`,
  );
  assert.equal(restored.code, 0, restored.text);
  assert.match(
    restored.text,
    /restored the backup of .*\nstart it with: (?:\.\/)?platform up --data/,
  );
  assert.deepEqual(readdirSync(base).sort(), ["backup", "data", "passphrase"]);

  const second = await start(data, keepIdentity(anyPort, first));
  // Tokens, keys and the passkey are those from before the backup.
  assert.deepEqual([...second.credentials], [...first.credentials]);
  const again = new Clients(second, tokens);
  await requireAll(again, before);
  await again.usePasskey(passkey);
  const read = await askStorage(second, key, { method: "GET", path: receipt.path });
  assert.deepEqual([read.status, read.text], [200, receipt.body]);
  const foreign = await askStorage(second, key, { method: "GET", path: "/photos/1.txt" });
  assert.equal(foreign.status, 403, foreign.text);
  const account = await ask(`${find(second.started, "auth").url}/api/v1/auth/account`, {
    headers: { authorization: `Bearer ${tokens.session}` },
  });
  assert.equal(account.status, 200, account.text);
  await second.stop();
});

test(
  "services that share a PostgreSQL database are saved with it, and restored to an empty one",
  { skip: findPostgresSkip() ?? false },
  async (t) => {
    const base = makeFolder();
    const data = join(base, "data");
    const backup = join(base, "backup");
    const cluster = await startPostgresCluster();
    t.after(() => cluster.stop());
    const url = await cluster.createDatabase();
    const secrets = {
      PLATFORM_AUTH_SESSION_SECRET: `base64:${randomBytes(32).toString("base64")}`,
      PLATFORM_AUTH_ENCRYPTION_KEYS: `base64:${randomBytes(32).toString("base64")}`,
      PLATFORM_NOTIFY_ENCRYPTION_KEYS: `base64:${randomBytes(32).toString("base64")}`,
    };
    const env = { ...secrets, DATABASE_URL: url };
    const some = ["--only", "identity,mail,tunnel", ...anyPort];
    const first = await start(data, some, env);
    const tokens = await signIn(first, admin);
    const writes = new ContinuousWrites(new Clients(first, tokens), ["identity", "mail", "tunnel"]);
    await writes.waitFor(5);
    const before = writes.copy();
    const saved = await finish(["backup", backup, "--data", data]);
    assert.equal(saved.code, 0, saved.text);
    assert.match(saved.text, /contains identity, mail, tunnel/);
    await writes.stop();
    await first.stop();
    const used = await finish(["restore", backup, "--data", join(base, "other")], env);
    assert.match(used.text, /identity: pg_restore failed: .*already exists/);
    rmSync(data, { recursive: true });
    await emptyDatabase(url);

    const restored = await finish(["restore", backup, "--data", data], env);
    assert.equal(restored.code, 0, restored.text);
    const second = await start(data, keepIdentity(some, first), env);
    await requireAll(new Clients(second, tokens), before);
    await second.stop();
  },
);

test("half a backup, a mixed one, another version and one of a single service are refused, and nothing is written", async () => {
  const base = makeFolder();
  const data = join(base, "data");
  const backup = join(base, "backup");
  const target = join(base, "restored");
  const up = await start(data, ["--only", "identity,messaging,storage", ...anyPort]);
  const saved = await finish(["backup", backup, "--data", data]);
  assert.equal(saved.code, 0, saved.text);
  assert.match(saved.text, /not encrypted, and contains private keys/);
  assert.match(saved.text, /contains identity, messaging, storage, credentials/);
  const other = await finish(["backup", join(base, "other"), "--data", data]);
  assert.equal(other.code, 0, other.text);
  await up.stop();
  const refuse = async (change: (copy: string) => void, message: RegExp): Promise<void> => {
    const copy = join(base, "copy");
    cpSync(backup, copy, { recursive: true });
    change(copy);
    const { code, text } = await finish(["restore", copy, "--data", target]);
    assert.equal(code, 1, text);
    assert.match(text, message);
    assert.equal(existsSync(target), false);
    rmSync(copy, { recursive: true });
  };
  await refuse(
    (copy) => rmSync(join(copy, "backup.json")),
    /has no backup\.json: not a backup, or an incomplete one/,
  );
  await refuse(
    (copy) => rmSync(join(copy, "vault"), { recursive: true }),
    /vault has no backup\.json/,
  );
  await refuse((copy) => {
    rmSync(join(copy, "pulse"), { recursive: true });
    cpSync(join(base, "other", "pulse"), join(copy, "pulse"), { recursive: true });
  }, /pulse: the manifest is not the one of this backup/);
  await refuse((copy) => {
    const [file] = globSync("vault/data/*.sqlite", { cwd: copy });
    const bytes = readFileSync(join(copy, file!));
    bytes[5_000]! ^= 1;
    writeFileSync(join(copy, file!), bytes);
  }, /storage: .*index\.sqlite: does not match its checksum/);
  await refuse((copy) => {
    const path = join(copy, "backup.json");
    const { manifest_sha256: _, ...manifest } = JSON.parse(readFileSync(path, "utf8"));
    const newer = { ...manifest, data_format: 2 };
    const digest = createHash("sha256").update(JSON.stringify(newer)).digest("hex");
    writeFileSync(path, JSON.stringify({ ...newer, manifest_sha256: digest }));
  }, /with data format 2; this version reads 1/);
  const single = await finish(["restore", join(backup, "auth"), "--data", target]);
  assert.match(single.text, /is a backup of identity alone: restore the folder above it/);
  const missing = await finish(["restore", join(base, "nothing"), "--data", target]);
  assert.match(missing.text, /has no backup\.json/);
  const checked = await finish(["restore", backup, "--data", target, "--dry-run"]);
  assert.equal(checked.code, 0, checked.text);
  assert.match(checked.text, /backup: intact, of/);
  assert.equal(existsSync(target), false);
});
