// State of the gateway in two files × every fault: restored and reported, or refused; never empty in silence.
import assert from "node:assert/strict";
import { copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test, type TestContext } from "node:test";
import { z } from "zod";
import { removeOverlay } from "../../src/control/overlay-file.ts";
import { createStateFile } from "../../src/access/state-file.ts";

const NAMES = ["api-keys.json", ".api-keys.json.copy"] as const;
const schema = z.array(z.string());

function makeFolder(context: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "gate-state-"));
  context.after(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function overwrite(path: string, at: number, change: (byte: number) => number): void {
  const bytes = readFileSync(path);
  for (let index = at; index < Math.min(at + 40, bytes.length); index++)
    bytes[index] = change(bytes[index]!);
  writeFileSync(path, bytes);
}

const FAULTS: Record<string, (path: string, older: string) => void> = {
  missing: (path) => rmSync(path),
  emptied: (path) => writeFileSync(path, ""),
  truncated: (path) => writeFileSync(path, readFileSync(path).subarray(0, 60)),
  header: (path) => overwrite(path, 0, () => 0x58),
  zeros: (path) => overwrite(path, 20, () => 0),
  bits: (path) => overwrite(path, 100, (byte) => byte ^ 1),
  older: (path, older) => copyFileSync(older, path),
};

test("after each fault of each file, the state is whole and the fault reported, or the start is refused", async (t) => {
  const stage = makeFolder(t);
  const live = makeFolder(t);
  const first = createStateFile(join(live, NAMES[0]), schema, undefined);
  const versions = [["a"], ["a", "b"], ["a", "b", "c"]];
  for (const [index, keys] of versions.entries()) {
    await first.write(keys);
    cpSync(live, join(stage, `v${index}`), { recursive: true });
  }
  const table: string[] = [];
  for (const name of NAMES) {
    for (const [fault, apply] of Object.entries(FAULTS)) {
      for (const older of fault === "older" ? ["v0", "v1"] : ["v0"]) {
        const folder = makeFolder(t);
        cpSync(join(stage, "v2"), folder, { recursive: true });
        apply(join(folder, name), join(stage, older, name));
        const faults: string[] = [];
        const file = createStateFile(join(folder, NAMES[0]), schema, (text) => faults.push(text));
        let verdict: string;
        try {
          assert.deepEqual(await file.read(), versions[2], `${name} ${fault}`);
          // A lost copy is written again without a word: nothing was at risk.
          assert.ok(faults.length > 0 || (name === NAMES[1] && fault === "missing"), fault);
          verdict = "whole, reported";
          const again: string[] = [];
          const next = createStateFile(join(folder, NAMES[0]), schema, (text) => again.push(text));
          assert.deepEqual([await next.read(), again], [versions[2], []]);
        } catch (error) {
          if (error instanceof assert.AssertionError) throw error;
          assert.match(String(error), /api-keys\.json is not usable: .*copy/);
          verdict = "refused";
        }
        table.push(`${name.padEnd(22)}${`${fault} ${older}`.padEnd(14)}${verdict}`);
      }
    }
  }
  t.diagnostic(table.join("\n"));
});

test("state of a version without copies has one after its next start", async (t) => {
  const folder = makeFolder(t);
  await createStateFile(join(folder, NAMES[0]), schema, undefined).write(["a"]);
  rmSync(join(folder, NAMES[1]));
  const open = () => createStateFile(join(folder, NAMES[0]), schema, () => {});
  assert.deepEqual(await open().read(), ["a"]);
  rmSync(join(folder, NAMES[0]));
  assert.deepEqual(await open().read(), ["a"]);
});

test("`overlay clear` removes both files, also where there are none", async (t) => {
  const path = join(makeFolder(t), "missing", "gate.json.overlay.json");
  await removeOverlay(path);
});
