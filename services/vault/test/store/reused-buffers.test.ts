// The buffer of an upload may be overwritten as soon as `write` has returned, even if the upload then waits for memory or
// the disk.
import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { StoreOptions } from "../../src/open-store.ts";
import type { Store } from "../../src/object-store.ts";
import { makeBytes, makeFolder, makeStore, read } from "./fixture.ts";

const MIB = 1024 * 1024;
const SIZES = [10_000, 300_000, 2.5 * MIB, 4 * MIB + 777];
const LANES = 4;
/** An odd size, so that chunks do not align with frames. */
const PIECE_BYTES = 65_521;

async function putFromScratch(store: Store, key: string, body: Buffer): Promise<void> {
  const scratch = Buffer.alloc(PIECE_BYTES);
  const upload = store.objects.beginPut({ bucket: "bucket", key, contentLength: body.length });
  for (let at = 0; at < body.length; at += PIECE_BYTES) {
    const piece = body.subarray(at, at + PIECE_BYTES);
    piece.copy(scratch);
    const waiting = upload.write(scratch.subarray(0, piece.length));
    scratch.fill(0xee);
    await waiting;
  }
  await upload.commit();
}

for (const drives of [1, 3]) {
  test(`bodies from reused buffers are stored correctly on ${drives} drives, with scarce memory`, async (context) => {
    const root = makeFolder(context);
    const folders = Array.from({ length: drives }, (_, slot) => join(root, `drive-${slot}`));
    for (const folder of folders) mkdirSync(folder);
    const several: Partial<StoreOptions> = drives === 1 ? {} : { drives: { folders } };
    // Room for one frame or one stripe: all bodies wait for each other.
    const store = await makeStore(context, { stagingBytesMax: 1.2 * MIB, ...several });
    const bodies = SIZES.flatMap((size) =>
      Array.from({ length: LANES }, (_, lane) => ({
        key: `${size}-${lane}`,
        body: makeBytes(size, lane + 1),
      })),
    );
    await Promise.all(bodies.map(({ key, body }) => putFromScratch(store, key, body)));
    for (const { key, body } of bodies) assert.ok((await read(store, key)).equals(body), key);
  });
}
