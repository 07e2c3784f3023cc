// Moves objects to a remote and back for some rounds. It prints a line before and after each change, and for each request that
// changes the remote, before that takes effect.
import { writeSync } from "node:fs";
import { LyingS3 } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { openTestStore } from "./stores.ts";
import { BUCKET, makeTierBody, TIER_OPTIONS, type TierLine } from "./tier-stage.ts";

const [root = "", port = "0", rounds = "1"] = process.argv.slice(2);
const KEYS = ["k0", "k1", "k2", "k3"];

const tell = (line: TierLine): void => void writeSync(1, `${JSON.stringify(line)}\n`);

const remote = await LyingS3.start({
  port: Number(port),
  judge: ({ method, bucket, key, body }) => {
    const name = `${bucket}/${key}`;
    if (method === "PUT") tell({ at: "remote", name, body: body.toString("base64") });
    if (method === "DELETE") tell({ at: "remote", name, body: null });
    return undefined;
  },
});
const store = await openTestStore(root, 1, TIER_OPTIONS);
await store.buckets.create({ bucket: BUCKET, owner: { id: "o", displayName: "o" }, region: "r" });
const settings = { name: "far", endpoint: remote.endpoint, region: "us-east-1", access_key: "a" };
await store.remotes.add(
  { ...settings, path_style: true, prefix: "", allow: ["*"], rate_bytes: 0, classes: [] },
  "secret",
);
const tier = { days: 0, prefix: "", remote: "far", bucket: "cold", minimum_size: 0 };
await store.buckets.setSetting(BUCKET, "coldTier", tier);
tell({ at: "ready" });
for (let round = 1; round <= Number(rounds); round += 1) await runRound(round);
await store.close();
await remote[Symbol.asyncDispose]();

// Each of the objects is written and moved; then one is deleted, one comes back, one is restored, and one stays.
async function runRound(round: number): Promise<void> {
  for (const key of KEYS) {
    tell({ at: "begin", key, round });
    await write(key, makeTierBody(key, round));
    tell({ at: "end", key, round });
  }
  await store.sweeps.start(BUCKET)!.ended;
  await store.maintenance.collect();
  const [deleted = "", returned = "", restored = ""] = KEYS.map((_, n) => KEYS[(n + round) % 4]!);
  tell({ at: "begin", key: deleted, round: 0 });
  await store.objects.delete({ bucket: BUCKET, key: deleted });
  tell({ at: "end", key: deleted, round: 0 });
  const itself = { bucket: BUCKET, key: returned };
  await store.copies.copy({ source: itself, ...itself, attributes: {} });
  await store.tiers.requestRestore({ bucket: BUCKET, key: restored }, 1);
  await waitFor(
    async () => (await store.tasks.count()).every(({ kind }) => kind === "end-restore"),
    "the end of the tasks",
  );
  await store.maintenance.collect();
  await store.maintenance.compact();
}

async function write(key: string, body: Buffer): Promise<void> {
  const upload = store.objects.beginPut({ bucket: BUCKET, key, contentLength: body.length });
  await upload.write(body);
  await upload.finish();
  await upload.commit();
}
