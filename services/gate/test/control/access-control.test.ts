// API keys, revoked users and policy on disk: stored before the answer, read back, and never lost to damage or another process.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createLogger } from "@platform/kernel/log";
import { createManualClock } from "@platform/kernel/time";
import { AccessControl } from "../../src/access/access-control.ts";
import { FolderLock } from "../../src/access/folder-lock.ts";
import { ChangeQueue } from "../../src/control/change-queue.ts";
import type { AccessChange } from "../../src/shared-state/index.ts";

const START_MS = Date.UTC(2026, 0, 1);
const wanted = { tenant: "acme", name: "shop", rateLimitRpm: 60, routes: ["/shop"] };

function makeState(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gate-state-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return join(folder, "gate.json.state");
}

async function open(context: TestContext, folder: string, isEphemeral = false) {
  const clock = createManualClock(START_MS);
  const applied: AccessChange[] = [];
  const lines: string[] = [];
  const queue = new ChangeQueue(10);
  const access = new AccessControl({
    folder,
    isEphemeral,
    lock: new FolderLock(folder, isEphemeral),
    clock,
    log: createLogger({ service: "gate", format: "json", write: (line) => void lines.push(line) }),
    runExclusive: (work) => queue.run(work),
    apply: (change) => {
      applied.push(change);
      return Promise.resolve();
    },
  });
  context.after(() => access.close());
  await access.load();
  return { access, clock, applied, lines };
}

test("a key is stored as its hash only, and read back after a restart", async (context) => {
  const folder = makeState(context);
  const first = await open(context, folder);
  const { record, plain } = await first.access.createKey(wanted, "operator");
  assert.match(plain, /^pgk_[\w-]{43}$/);
  assert.equal(record.hash, createHash("sha256").update(plain).digest("hex"));
  const file = join(folder, "api-keys.json");
  assert.ok(!readFileSync(file, "utf8").includes(plain));
  assert.ok(!first.lines.join("\n").includes(plain));
  if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o777, 0o600);
  first.access.close();
  const second = await open(context, folder);
  assert.deepEqual(second.access.listKeys(), [record]);
  assert.deepEqual(second.access.list().keys, [
    { id: record.id, tenant: "acme", sha256: record.hash, rateLimitRpm: 60, routes: ["/shop"] },
  ]);
});

test("a revoked key stays listed and is sent to workers as removed", async (context) => {
  const { access, applied } = await open(context, makeState(context));
  const { record } = await access.createKey(wanted, "operator");
  const revoked = await access.revokeKey(record.id, "operator");
  assert.equal(revoked.revoked_at, "2026-01-01T00:00:00.000Z");
  assert.deepEqual(applied.at(-1), { removedKeys: [record.id] });
  assert.deepEqual(access.list().keys, []);
  assert.equal(access.listKeys().length, 1);
  await assert.rejects(access.revokeKey("other", "operator"), { code: "not_found" });
});

test("revoked users and the policy survive a restart", async (context) => {
  const folder = makeState(context);
  const { access, clock } = await open(context, folder);
  await access.revokeUser("ada", "operator");
  clock.advance(5_000);
  await access.revokeUser("bob", "operator");
  await access.reloadPolicy({ rules: [{ effect: "deny", path: "/x" }] }, "operator");
  const { version } = await access.reloadPolicy({}, "operator");
  assert.equal(version, 3);
  access.close();
  const { access: again } = await open(context, folder);
  const seconds = START_MS / 1_000;
  assert.deepEqual(again.list().revokedUsers, [
    { user: "ada", revokedAt: seconds },
    { user: "bob", revokedAt: seconds + 5 },
  ]);
  assert.deepEqual(again.list().policy, {
    version: 3,
    reloadedAt: seconds + 5,
    default: "allow",
    rules: [{ effect: "deny", path: "/x" }],
  });
});

test("a lower policy version is refused", async (context) => {
  const { access } = await open(context, makeState(context));
  await access.reloadPolicy({ version: 7 }, "operator");
  await assert.rejects(access.reloadPolicy({ version: 6 }, "operator"), { code: "conflict" });
});

test("an operator lowers a version that is too high, and gateways with it follow", async (context) => {
  const { access } = await open(context, makeState(context));
  const { access: other } = await open(context, makeState(context));
  await access.reloadPolicy({ version: Number.MAX_SAFE_INTEGER }, "operator");
  await other.mergeShared(access.listShared());
  await assert.rejects(access.reloadPolicy({}, "operator"), /allow_lower_version/);
  const lowered = await access.reloadPolicy({ version: 5, allow_lower_version: true }, "operator");
  assert.equal(lowered.version, 5);
  await access.mergeShared(other.listShared());
  await other.mergeShared(access.listShared());
  for (const gateway of [access, other]) assert.equal(gateway.list().policy?.version, 5);
  // Later reloads of any gateway need nothing of the kind.
  assert.equal((await other.reloadPolicy({}, "operator")).version, 6);
  await access.mergeShared(other.listShared());
  assert.equal(access.list().policy?.version, 6);
});

for (const [what, damage] of [
  ["a changed byte", (text: string) => text.replace("acme", "acmf")],
  ["a cut file", (text: string) => text.slice(0, -20)],
  ["an empty file", () => ""],
  ["a later version", (text: string) => text.replace('"version":1', '"version":2')],
] as const) {
  test(`${what} is restored from the copy; without one it stops the start`, async (context) => {
    const folder = makeState(context);
    const { access } = await open(context, folder);
    const { record } = await access.createKey(wanted, "operator");
    access.close();
    const file = join(folder, "api-keys.json");
    writeFileSync(file, damage(readFileSync(file, "utf8")));
    const restored = await open(context, folder);
    assert.deepEqual(
      restored.access.listKeys().map(({ id }) => id),
      [record.id],
    );
    restored.access.close();
    writeFileSync(file, damage(readFileSync(file, "utf8")));
    rmSync(join(folder, ".api-keys.json.copy"));
    await assert.rejects(open(context, folder), /api-keys\.json is not usable: .*Restore it/);
  });
}

test("a second gateway cannot overwrite the state of the first", async (context) => {
  const folder = makeState(context);
  const first = await open(context, folder);
  const second = await open(context, folder);
  const { record } = await first.access.createKey(wanted, "operator");
  await assert.rejects(second.access.createKey(wanted, "operator"), /another gateway/);
  first.access.close();
  const { record: later } = await second.access.createKey(wanted, "operator");
  assert.deepEqual(second.access.listKeys(), [record, later]);
});

test("an ephemeral gateway reads the state and does not write it", async (context) => {
  const folder = makeState(context);
  const first = await open(context, folder);
  await first.access.createKey(wanted, "operator");
  const { access } = await open(context, folder, true);
  await access.createKey(wanted, "operator");
  assert.equal(access.listKeys().length, 2);
  assert.equal((await open(context, folder)).access.listKeys().length, 1);
});

test("a folder that cannot be written refuses the change", async (context) => {
  const folder = makeState(context);
  const { access } = await open(context, folder);
  writeFileSync(folder, "a file");
  await assert.rejects(access.createKey(wanted, "operator"), { code: "conflict" });
  assert.deepEqual(access.listKeys(), []);
});
