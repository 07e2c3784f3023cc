// Mail on a small file system of its own that becomes full: refused as such, reported, and continued when space is free.
import assert from "node:assert/strict";
import { rmSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { mountSmallDisk } from "@platform/testing/disks";
import { waitFor } from "@platform/testing/wait";
import { startStage, type Stage } from "../stage.ts";

const SIZE_MIB = 16;

function send(stage: Stage, number: number) {
  const mail = { to: "ada@example.org", subject: `mail ${number}`, text: "x".repeat(200_000) };
  return stage.call("POST", "/api/v1/send", mail);
}

test("a full disk is 507 and shown by readiness; acknowledged mail is there, and more is accepted once space is free", async (t) => {
  const folder = mountSmallDisk(t, { mib: SIZE_MIB });
  if (folder === undefined) return t.skip("a file system cannot be mounted here");
  const ballast = join(folder, "ballast");
  writeFileSync(ballast, Buffer.alloc(6 * 1024 ** 2));
  const stage = await startStage({ data_dir: join(folder, "notify") });
  const accepted: string[] = [];
  let refused = 0;
  for (let number = 0; refused < 5; number++) {
    assert.ok(
      number < 500,
      `the disk was never full, ${statfsSync(folder).bavail} blocks are free`,
    );
    const { status, body } = await send(stage, number);
    if (status < 300) accepted.push(body.message_id);
    else {
      assert.deepEqual([status, body.code], [507, "insufficient_storage"], JSON.stringify(body));
      refused++;
    }
  }
  assert.ok(accepted.length > 0);
  const ready = await stage.call("GET", "/readyz");
  assert.equal(ready.status, 503);
  assert.match(ready.body.checks.database.detail, /^disk_full/);
  rmSync(ballast);
  const more = await waitFor(async () => {
    const { status, body } = await send(stage, 1_000);
    return status < 300 ? (body.message_id as string) : undefined;
  });
  for (const id of [...accepted, more])
    assert.equal((await stage.call("GET", `/api/v1/messages/${id}`)).status, 200);
  await waitFor(async () => (await stage.call("GET", "/readyz")).status === 200);
  await stage.close();
});
