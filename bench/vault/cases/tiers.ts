// Cold data: a sweep to a second store on loopback, and reads through it, beside the same work without our tier.
import { randomBytes } from "node:crypto";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { CREDENTIALS } from "../presign.ts";
import { makePlatformVaultd } from "../stores/platform-vaultd.ts";
import type { ObjectStore } from "../stores/store.ts";
import { type Ask, inLanes, LANES, openTwoStores, takeP50, time } from "../two-stores.ts";

const KIB = 2 ** 10;
const MIB = 2 ** 20;
const SMALL = { count: 1_000, bytes: 64 * KIB };
const LARGE = { count: 4, bytes: 64 * MIB };

/** A second store of the same build as the remote. */
export const tiers: BenchCase = {
  name: "tiers",
  title: "Cold data in a second store",
  isOptional: true,
  run: async (context) => {
    const rows: Row[] = [];
    for (const build of context.builds) {
      const store = makePlatformVaultd(build);
      const absence = store.explainAbsence();
      const direct = `direct (${build.label})`;
      const ours: Row = { name: store.name, isOurs: true, version: "", rounds: [] };
      const other: Row = { name: direct, isOurs: false, version: "", rounds: [] };
      rows.push(ours, other);
      if (absence === undefined) {
        ours.version = store.readVersion();
        const { tiered, client } = await measure(context, store);
        ours.rounds.push(tiered);
        other.rounds.push(client);
      } else ours.note = absence;
    }
    const against = `direct (${context.builds[0]!.label})`;
    return {
      work: `Sweeps of ${SMALL.count} objects of 64 KiB and ${LARGE.count} of 64 MiB, and ranges of 4 KiB, read one after another. "Direct" is a client with ${LANES} lanes that copies the same objects from one store to the other, or reads the range there. One round; both stores and the load share the cores.`,
      columns: [
        { key: "smallPerS", title: "64 KiB objects/s", digits: 0 },
        { key: "largeMibPerS", title: "64 MiB: MiB/s", digits: 0 },
        { key: "rangeMs", title: "4 KiB range p50, ms", digits: 2 },
        { key: "localMs", title: "GET of a local object p50 with a dead remote, ms", digits: 2 },
      ],
      rows,
      ratioColumns: ["smallPerS", "largeMibPerS", "rangeMs", "localMs"],
      goals: [
        { column: "largeMibPerS", against, atLeast: 0.4 },
        { column: "rangeMs", against, atMost: 2.5 },
      ],
    };
  },
};

async function measure(context: BenchContext, store: ObjectStore) {
  await using workspace = new Workspace();
  const { near, far } = await openTwoStores(context, store, workspace);
  const [askNear, askFar] = [near.ask, far.ask];
  for (const bucket of ["/cold", "/copied"]) await askFar("PUT", bucket);
  const tiered: Record<string, number> = {};
  const client: Record<string, number> = {};
  for (const [bucket, { count, bytes }] of [
    ["small", SMALL],
    ["large", LARGE],
  ] as const) {
    await askNear("PUT", `/${bucket}`);
    const keys = Array.from({ length: count }, (_, index) => `/${bucket}/${index}`);
    await inLanes(keys, async (key) => {
      await askNear("PUT", key, {}, { body: new Uint8Array(randomBytes(bytes)) });
    });
    const directMs = await time(() =>
      inLanes(keys, async (key) => {
        const body = new Uint8Array(await (await askNear("GET", key)).arrayBuffer());
        await askFar("PUT", key.replace(`/${bucket}/`, `/copied/${bucket}-`), {}, { body });
      }),
    );
    const tier = {
      days: 0,
      endpoint: far.origin,
      bucket: "cold",
      access_key: CREDENTIALS.accessKey,
      secret_key: CREDENTIALS.secretKey,
      minimum_size: 0,
    };
    await askNear("PUT", `/${bucket}`, { "cold-tier": "" }, { body: JSON.stringify(tier) });
    const sweptMs = await time(() => sweep(askNear, bucket, count));
    const scale = bucket === "small" ? count : (count * bytes) / MIB;
    const column = bucket === "small" ? "smallPerS" : "largeMibPerS";
    tiered[column] = (scale * 1_000) / sweptMs;
    client[column] = (scale * 1_000) / directMs;
  }
  const range = { headers: { range: "bytes=1048576-1052671" } };
  client["rangeMs"] = await takeP50(() => askFar("GET", "/copied/large-0", {}, range));
  tiered["rangeMs"] = await takeP50(() => askNear("GET", "/large/0", {}, range));
  await askNear("PUT", "/local");
  await askNear("PUT", "/local/a", {}, { body: new Uint8Array(4 * KIB) });
  client["localMs"] = await takeP50(() => askNear("GET", "/local/a"));
  process.kill(far.pid, "SIGKILL");
  // Reads that wait for the dead remote go on beside those that are measured.
  const waiting = Array.from({ length: 32 }, (_, index) =>
    askNear("GET", `/small/${index}`).catch(() => undefined),
  );
  tiered["localMs"] = await takeP50(() => askNear("GET", "/local/a"));
  await Promise.all(waiting);
  return { tiered, client };
}

// A sweep that takes longer than its request continues; the next one joins it.
async function sweep(ask: Ask, bucket: string, count: number): Promise<void> {
  for (let moved = 0; moved < count;) {
    const answer = await ask("POST", `/${bucket}`, { "cold-tier": "", sweep: "" });
    const report = (await answer.json()) as { moved: number; failed: number; state: string };
    if (report.failed > 0) throw new Error(JSON.stringify(report));
    moved = report.state === "done" ? count : report.moved;
  }
}
