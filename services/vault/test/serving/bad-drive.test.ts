// One drive of three whose files cannot be written while the store runs: the store continues with the others, and says so.
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { freezeFiles } from "@platform/testing/disks";
import { waitFor } from "@platform/testing/wait";
import { serve, type Serving } from "./serving.ts";

function makeDrives(t: TestContext): [string, string, string] {
  const folder = mkdtempSync(join(tmpdir(), "vault-drives-"));
  t.after(() => rmSync(folder, { recursive: true, force: true }));
  const drives = ["a", "b", "c"].map((name) => join(folder, name)) as [string, string, string];
  for (const drive of drives) mkdirSync(drive);
  return drives;
}

function start(drives: readonly string[]): Promise<Serving> {
  const env = { PLATFORM_VAULT_DRIVES: drives.join(","), PLATFORM_VAULT_ENABLE_AUDIT: "false" };
  return serve({ env });
}

// Small and large bodies: in segments, and in files of their own.
async function putAll({ s3 }: Serving, name: string): Promise<Map<string, Buffer>> {
  const bodies = new Map<string, Buffer>();
  for (const [at, size] of [100, 30_000, 2_000_000].entries()) {
    const key = `/kept/${name}-${at}`;
    bodies.set(key, Buffer.alloc(size, `${name} ${at} `));
    await s3.must("PUT", key, { body: bodies.get(key)! });
  }
  return bodies;
}

async function checkAll({ s3 }: Serving, bodies: ReadonlyMap<string, Buffer>): Promise<void> {
  for (const [key, body] of bodies) assert.ok((await s3.must("GET", key)).body.equals(body), key);
}

async function waitForWarning({ s3 }: Serving, drive: string): Promise<void> {
  await waitFor(async () => {
    const { text } = await s3.send("GET", "/readyz", { key: null });
    return text.includes(drive);
  }, "readiness names the drive");
}

for (const bad of [0, 1]) {
  test(`the files of drive ${bad + 1} of three become unwritable`, async (t) => {
    const drives = makeDrives(t);
    await using serving = await start(drives);
    await serving.s3.must("PUT", "/kept");
    const bodies = await putAll(serving, "before");
    const drive = drives[bad]!;
    const files = readdirSync(drive, { recursive: true, encoding: "utf8" })
      .map((path) => join(drive, path))
      .filter((path) => statSync(path).isFile());
    const thaw = freezeFiles(t, files);
    if (thaw === undefined) return t.skip("files cannot be made immutable here");
    for (const name of ["one", "two"])
      for (const [key, body] of await putAll(serving, name)) bodies.set(key, body);
    await checkAll(serving, bodies);
    await waitForWarning(serving, drive);
    thaw();
    await serving.vault.stop();
    await serving.vault.start();
    await checkAll(serving, bodies);
  });
}
