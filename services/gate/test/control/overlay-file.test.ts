// The overlay's file: on disk before a change is answered, never half written.
import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { EMPTY_OVERLAY, upsertRoute } from "../../src/control/overlay.ts";
import {
  createEphemeralOverlay,
  createOverlayFile,
  getOverlayPath,
} from "../../src/control/overlay-file.ts";

const one = upsertRoute(EMPTY_OVERLAY, new Map(), { prefix: "/a", target: "http://t" });

function makeFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gate-overlay-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

test("a stored overlay is read back, and an empty one leaves no file", async (context) => {
  const folder = makeFolder(context);
  const path = getOverlayPath(join(folder, "gate.json"));
  const store = createOverlayFile(path);
  assert.deepEqual(await store.read(), EMPTY_OVERLAY);
  await store.write(one);
  assert.deepEqual(await store.read(), one);
  assert.deepEqual(readdirSync(folder).toSorted(), [
    ".gate.json.overlay.json.copy",
    "gate.json.overlay.json",
  ]);
  if (process.platform !== "win32") assert.equal(statSync(path).mode & 0o777, 0o600);
  await store.write(EMPTY_OVERLAY);
  assert.deepEqual(readdirSync(folder), []);
});

test("a draft file left by a crash is ignored", async (context) => {
  const path = join(makeFolder(context), "o.json");
  writeFileSync(`${path}.1-1.new`, "{ half");
  const store = createOverlayFile(path);
  assert.deepEqual(await store.read(), EMPTY_OVERLAY);
  await store.write(one);
  assert.deepEqual(await store.read(), one);
});

test("a change that cannot be stored is refused with a remedy", async (context) => {
  const path = join(makeFolder(context), "o.json");
  mkdirSync(path);
  await assert.rejects(createOverlayFile(path).write(one), (error: Error) => {
    assert.match(
      error.message,
      /would be lost on a restart: .*o\.json cannot be written .*--ephemeral/,
    );
    return true;
  });
  // The refused change is not in the copy either.
  rmdirSync(path);
  assert.deepEqual(await createOverlayFile(path).read(), EMPTY_OVERLAY);
});

test("the error for a damaged overlay names its path and a remedy", async (context) => {
  const path = join(makeFolder(context), "o.json");
  writeFileSync(path, "{}");
  await assert.rejects(createOverlayFile(path).read(), /o\.json is not usable: .*overlay clear/);
});

test("an ephemeral overlay starts with the stored one and stores nothing", async (context) => {
  const folder = makeFolder(context);
  const path = join(folder, "o.json");
  await createOverlayFile(path).write(one);
  const store = createEphemeralOverlay(path);
  assert.deepEqual(await store.read(), one);
  await store.write(EMPTY_OVERLAY);
  assert.deepEqual(await store.read(), EMPTY_OVERLAY);
  assert.deepEqual(await createOverlayFile(path).read(), one);
});
