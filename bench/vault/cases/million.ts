// A million objects: cost of a listing page in the middle, startup time and memory.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { findFreePort } from "../../../tests/stage/process.ts";
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Row } from "../../harness/report.ts";
import { takeMedian } from "../../harness/statistics.ts";
import { readTreeUsage } from "../../harness/usage.ts";
import { runWrk } from "../../harness/wrk.ts";
import { BUCKET_PATH, writeTargets } from "../contest.ts";
import { fillMillion, FOLDERS, nameKey } from "../fill.ts";
import { makePlatformVaultd } from "../stores/platform-vaultd.ts";
import type { ObjectStore } from "../stores/store.ts";

const STARTS = 3;
const CONNECTIONS = 8;
const PLACES = [
  { name: "start", folder: 0 },
  { name: "middle", folder: FOLDERS / 2 },
  { name: "end", folder: FOLDERS - 2 },
];

const listings = PLACES.flatMap(({ name, folder }) => [
  {
    name: `1 000 keys of all, ${name}`,
    query: { "max-keys": "1000", "start-after": nameKey(folder, 0) },
  },
  {
    name: `1 000 keys under a prefix, ${name}`,
    query: { prefix: nameKey(folder, 0).slice(0, -"key-0000".length), delimiter: "/" },
  },
  {
    name: `100 common prefixes, ${name}`,
    // Starts early enough that 100 common prefixes remain.
    query: {
      delimiter: "/",
      "max-keys": "100",
      "start-after": nameKey(Math.min(folder, FOLDERS - 101), 9_999),
    },
  },
]);

/** Listings of a million objects. */
export const million: BenchCase = {
  name: "million",
  title: "A million objects",
  isOptional: true,
  run: async (context) => {
    await using workspace = new Workspace();
    const folder = join(workspace.folder, "full");
    mkdirSync(folder);
    context.say("  filling");
    const filledPerS = await fillMillion(join(folder, "data"));
    const rows: Row[] = [];
    const remarks = [`- Filled by the store's own interface: ${filledPerS.toFixed(0)} objects/s.`];
    for (const build of context.builds) {
      const store = makePlatformVaultd(build);
      const absence = store.explainAbsence();
      if (absence !== undefined) {
        remarks.push(`- ${store.name}: ${absence}`);
        continue;
      }
      const empty = await measureStarts(context, store, join(workspace.folder, build.label));
      const full = await measureStarts(context, store, folder);
      remarks.push(
        `- ${store.name}: from the command to the open port ${full.startMs.toFixed(0)} ms (empty: ` +
          `${empty.startMs.toFixed(0)} ms), memory then ${full.mib.toFixed(0)} MiB (empty: ${empty.mib.toFixed(0)} MiB).`,
      );
      rows.push(...(await measureListings(context, store, workspace, folder, remarks)));
    }
    return {
      work: "8 connections, presigned listings (V2) of one bucket with a million objects in a thousand folders.",
      columns: [
        { key: "perS", title: "requests/s", digits: 0 },
        { key: "p50Us", title: "p50 µs", digits: 0 },
        { key: "p99Us", title: "p99 µs", digits: 0 },
      ],
      rows,
      ratioColumns: [],
      goals: [],
      remarks,
    };
  },
};

async function measureStarts(
  context: BenchContext,
  store: ObjectStore,
  folder: string,
): Promise<{ startMs: number; mib: number }> {
  mkdirSync(folder, { recursive: true });
  const startsMs: number[] = [];
  let mib = 0;
  for (let start = 0; start < STARTS; start++) {
    await using own = new Workspace();
    const port = await findFreePort();
    const begun = performance.now();
    const setup = { port, cores: context.cores.all, folder, workspace: own };
    const [pid] = await store.start(setup);
    startsMs.push(performance.now() - begun);
    mib = readTreeUsage(pid!).pssBytes / 2 ** 20;
  }
  return { startMs: takeMedian(startsMs), mib };
}

async function measureListings(
  context: BenchContext,
  store: ObjectStore,
  workspace: Workspace,
  folder: string,
  remarks: string[],
): Promise<Row[]> {
  const port = await findFreePort();
  await using own = new Workspace();
  const setup = { port, cores: context.cores.all, folder, workspace: own };
  const [pid] = await store.start(setup);
  const host = `127.0.0.1:${port}`;
  const version = store.readVersion();
  const rows: Row[] = listings.map(({ name }) => ({
    name: `${store.name}: ${name}`,
    isOurs: true,
    version,
    rounds: [],
  }));
  for (let round = 0; round < context.rounds; round++) {
    for (const [index, { query }] of listings.entries()) {
      const target = { path: BUCKET_PATH, query: { "list-type": "2", ...query } };
      const targetsPath = writeTargets(workspace.folder, host, store, {
        method: "GET",
        targets: [target],
      });
      const summary = await runWrk({
        url: `http://${host}`,
        connections: CONNECTIONS,
        seconds: context.seconds,
        cycle: { method: "GET", targetsPath, bodyBytes: 0 },
        cores: context.cores.load,
        scratch: workspace.folder,
      });
      const { requests, failed, durationUs, p50Us, p99Us } = summary;
      const perS = (requests * 1e6) / durationUs;
      rows[index]!.rounds.push(failed > 0 ? undefined : { perS, p50Us, p99Us });
      context.say(`  ${rows[index]!.name}: ${perS.toFixed(0)} requests/s`);
    }
  }
  const { pssBytes } = readTreeUsage(pid!);
  remarks.push(
    `- ${store.name}: memory after the listings ${(pssBytes / 2 ** 20).toFixed(0)} MiB.`,
  );
  return rows;
}
