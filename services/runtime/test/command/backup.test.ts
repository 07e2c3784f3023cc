// `platform backup` and `restore`: the data directory is lost, and everything acknowledged before is back.
import assert from "node:assert/strict";
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
import { findPostgresSkip, startPostgresCluster } from "@platform/kernel/db-testing";
import { anyPort, find, findStarted, makeFolder, run } from "../fixture/platform-process.ts";

const admin = { username: "root", password: "correct horse battery staple" };
const identity = {
  PLATFORM_AUTH_ADMIN_USER: admin.username,
  PLATFORM_AUTH_ADMIN_PASSWORD: admin.password,
};
const passphrase = "an encrypted backup of everything";

async function start(data: string, ports: readonly string[] = anyPort) {
  const up = run(["up", "--json", "--data", data, ...ports], identity);
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

async function finish(args: string[]): Promise<{ code: unknown; text: string }> {
  const command = run(args);
  const code = await command.exit;
  const { out, err } = command.output();
  return { code, text: out + err };
}

interface Ask {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

async function json(url: string, { headers, ...init }: Ask = {}) {
  const answer = await fetch(url, {
    ...init,
    headers: { "content-type": "application/json", ...headers },
  });
  return { status: answer.status, body: JSON.parse(await answer.text()) };
}

test("everything acknowledged before a backup under load is restored after the data directory is lost", async (t) => {
  const base = makeFolder();
  const data = join(base, "data");
  const backup = join(base, "backup");
  const secretFile = join(base, "passphrase");
  writeFileSync(secretFile, `${passphrase}\n`);
  const first = await start(data);
  const auth = find(first.started, "auth").url;
  const pulse = find(first.started, "pulse").url;
  const token = first.credentials.get("PLATFORM_PULSE_TOKEN")!;
  const login = await json(`${auth}/api/v1/auth/login`, {
    method: "POST",
    body: JSON.stringify(admin),
  });
  const session = login.body.session_token as string;

  const acknowledged: { payload: string; offset: number }[] = [];
  const over = new AbortController();
  const publish = async (lane: number): Promise<void> => {
    for (let number = 0; !over.signal.aborted; number += 1) {
      const payload = `${lane}/${number} ${"x".repeat(number % 2_000)}`;
      const { status, body } = await json(`${pulse}/api/v1/publish`, {
        method: "POST",
        headers: { authorization: `Bearer ${token}` },
        body: JSON.stringify({ topic: `orders-${lane}`, payload }),
      });
      if (status === 200) acknowledged.push({ payload, offset: body.offset });
      else await new Promise((resolve) => setTimeout(resolve, 20));
    }
  };
  const publishing = [1, 2, 3].map(publish);
  while (acknowledged.length < 50) await new Promise((resolve) => setTimeout(resolve, 20));
  const bucket = await finish(["bucket", "add", "photos", "--data", data]);
  assert.equal(bucket.code, 0, bucket.text);
  const before = [...acknowledged];
  const startedMs = performance.now();
  const saved = await finish(["backup", backup, "--data", data, "--passphrase-file", secretFile]);
  const savedMs = performance.now() - startedMs;
  assert.equal(saved.code, 0, saved.text);
  assert.match(
    saved.text,
    /identity: saving[^]*messaging: saving[^]*storage: saving[^]*complete, in/,
  );
  assert.doesNotMatch(saved.text, /not encrypted/);
  over.abort();
  await Promise.all(publishing);
  const ports = first.started.services.length;
  assert.ok(ports > 4);

  const twice = await finish(["backup", backup, "--data", data]);
  assert.match(twice.text, /backup is not empty/);
  const taken = await finish(["restore", backup, "--data", data, "--passphrase-file", secretFile]);
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
  const restored = await finish([
    "restore",
    backup,
    "--data",
    data,
    "--passphrase-file",
    secretFile,
  ]);
  t.diagnostic(
    `saved in ${Math.round(savedMs)} ms, restored in ${Math.round(performance.now() - restoreMs)} ms`,
  );
  assert.equal(restored.code, 0, restored.text);
  assert.match(restored.text, /restored the backup of .*\nstart it with: platform up --data/);
  assert.deepEqual(readdirSync(base).sort(), ["backup", "data", "passphrase"]);

  const second = await start(data);
  assert.deepEqual([...second.credentials], [...first.credentials]);
  const pulseAgain = find(second.started, "pulse").url;
  const headers = { authorization: `Bearer ${token}` };
  for (const lane of [1, 2, 3]) {
    const { body } = await json(`${pulseAgain}/api/v1/tail?topic=orders-${lane}&n=1000`, {
      headers,
    });
    const found = new Set(body.messages.map(({ payload }: { payload: string }) => payload));
    for (const { payload } of before) {
      if (payload.startsWith(`${lane}/`)) assert.ok(found.has(payload), payload.slice(0, 20));
    }
  }
  const account = await json(`${find(second.started, "auth").url}/api/v1/auth/account`, {
    headers: { authorization: `Bearer ${session}` },
  });
  assert.equal(account.status, 200, "the session from before the backup");
  const again = await finish(["bucket", "add", "photos", "--data", data]);
  assert.match(again.text, /photos/, "the root key works");
  await second.stop();
});

test(
  "a backup says which services are not in it because their database is elsewhere",
  { skip: findPostgresSkip() ?? false },
  async (t) => {
    const base = makeFolder();
    const data = join(base, "data");
    const cluster = await startPostgresCluster();
    t.after(() => cluster.stop());
    const up = run(["up", "--json", "--data", data, "--only", "mail,tunnel", ...anyPort], {
      PLATFORM_NOTIFY_DATABASE_URL: await cluster.createDatabase(),
    });
    await up.waitFor(findStarted);
    const { code, text } = await finish(["backup", join(base, "backup"), "--data", data]);
    up.child.kill("SIGTERM");
    await up.exit;
    assert.equal(code, 0, text);
    assert.match(text, /NOT contained: mail, whose database is not in the data folder/);
    assert.doesNotMatch(text, /NOT contained: tunnel/);
  },
);

test("half a backup, a mixed one, another version and one of a single service are refused, and nothing is written", async () => {
  const base = makeFolder();
  const data = join(base, "data");
  const backup = join(base, "backup");
  const target = join(base, "restored");
  const up = await start(data);
  const saved = await finish(["backup", backup, "--data", data]);
  assert.equal(saved.code, 0, saved.text);
  assert.match(saved.text, /not encrypted, and contains private keys/);
  assert.match(saved.text, /contains mail, identity, storage, messaging/);
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
  const single = await finish(["restore", join(backup, "auth"), "--data", target]);
  assert.match(single.text, /is a backup of identity alone: restore the folder above it/);
  const missing = await finish(["restore", join(base, "nothing"), "--data", target]);
  assert.match(missing.text, /has no backup\.json/);
  const checked = await finish(["restore", backup, "--data", target, "--dry-run"]);
  assert.equal(checked.code, 0, checked.text);
  assert.match(checked.text, /backup: intact, of/);
  assert.equal(existsSync(target), false);
});
