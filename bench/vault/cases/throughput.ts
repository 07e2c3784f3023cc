// The five workloads with goals: writing and reading small and large objects, and listings.
import { Workspace, type BenchCase, type BenchContext } from "../../harness/case.ts";
import type { Goal } from "../../harness/report.ts";
import { BUCKET_PATH, STORE_COLUMNS, nameObject, runStores, type StoreLoad } from "../contest.ts";
import { measureDisk } from "../disk.ts";
import { nginxFiles } from "../stores/nginx.ts";
import { makePlatformVaultd } from "../stores/platform-vaultd.ts";
import { radosgw } from "../stores/radosgw.ts";
import { s3rver } from "../stores/s3rver.ts";

const KIB = 1_024;
const SMALL_BYTES = 4 * KIB;
const LARGE_BYTES = 8 * KIB * KIB;
const SMALL_OBJECTS = 20_000;
const LARGE_OBJECTS = 32;
const LARGE_CONNECTIONS = 4;
const READ_OBJECTS = 2_000;
const LISTED_OBJECTS = 10_000;
const PAGE_KEYS = 1_000;

const listObjects = (count: number) =>
  Array.from({ length: count }, (_, index) => ({ path: nameObject(index) }));

/** Options of a throughput case. */
function makeCase(options: {
  name: string;
  title: string;
  work: string;
  load: StoreLoad;
  hasCeiling?: boolean;
  /** True if the disk may be the bottleneck of all stores. */
  isBoundByDisk?: boolean;
  goals: readonly Goal[];
}): BenchCase {
  const { name, title, work, load, goals } = options;
  return {
    name,
    title,
    run: async (context) => {
      await using workspace = new Workspace();
      const stores = [
        ...context.builds.map((build) => makePlatformVaultd(build)),
        radosgw,
        s3rver,
        ...(options.hasCeiling === true ? [nginxFiles] : []),
      ];
      const rows = await runStores(context, workspace, stores, load);
      const report = { work, columns: STORE_COLUMNS, rows, goals };
      const remarks = options.isBoundByDisk === true ? [await tellDisk(context, workspace)] : [];
      return { ...report, ratioColumns: ["perS", "cpuUs"], remarks };
    },
  };
}

async function tellDisk({ seconds }: BenchContext, { folder }: Workspace): Promise<string> {
  const lanes = LARGE_CONNECTIONS;
  const mibPerS = await measureDisk(folder, { lanes, bytes: LARGE_BYTES, seconds });
  return `- The disk alone takes ${mibPerS.toFixed(0)} MiB/s, ${lanes} files of 8 MiB at a time and each synced: the ceiling of all durable stores.`;
}

/** Small objects in: mostly the cost of an acknowledgement. */
export const putSmall = makeCase({
  name: "put-small",
  title: "PUT 4 KiB",
  work: "32 connections, presigned PUTs of 4 KiB to 20 000 keys in turn. radosgw writes one copy; s3rver syncs nothing.",
  load: {
    fill: { count: 0, bytes: 0 },
    connections: 32,
    method: "PUT",
    bodyBytes: SMALL_BYTES,
    targets: listObjects(SMALL_OBJECTS),
    movedBytes: SMALL_BYTES,
  },
  goals: [
    { column: "perS", against: "radosgw", atLeast: 3 },
    { column: "perS", against: "s3rver", atLeast: 3 },
  ],
});

/** Small objects out. */
export const getSmall = makeCase({
  name: "get-small",
  title: "GET 4 KiB",
  work: "32 connections, presigned GETs of 2 000 objects of 4 KiB in turn.",
  hasCeiling: true,
  load: {
    fill: { count: READ_OBJECTS, bytes: SMALL_BYTES },
    connections: 32,
    method: "GET",
    bodyBytes: 0,
    targets: listObjects(READ_OBJECTS),
    movedBytes: SMALL_BYTES,
  },
  goals: [
    { column: "perS", against: "radosgw", atLeast: 6 },
    { column: "perS", against: "nginx", atLeast: 0.3 },
  ],
});

/** Pages of a thousand keys. */
export const listThousand = makeCase({
  name: "list-thousand",
  title: "LIST 1 000",
  work: "8 connections, presigned listings (V2) of 1 000 of 10 000 keys, beginning at ten places in turn.",
  load: {
    fill: { count: LISTED_OBJECTS, bytes: 16 },
    connections: 8,
    method: "GET",
    bodyBytes: 0,
    targets: Array.from({ length: LISTED_OBJECTS / PAGE_KEYS }, (_, page) => ({
      path: BUCKET_PATH,
      query: {
        "list-type": "2",
        "max-keys": String(PAGE_KEYS),
        ...(page === 0
          ? {}
          : { "start-after": nameObject(page * PAGE_KEYS - 1).slice(BUCKET_PATH.length + 1) }),
      },
    })),
    movedBytes: 0,
  },
  goals: [{ column: "perS", against: "radosgw", atLeast: 5 }],
});

/** Large objects in. */
export const putLarge = makeCase({
  name: "put-large",
  title: "PUT 8 MiB",
  work: "4 connections, presigned PUTs of 8 MiB to 32 keys in turn.",
  load: {
    fill: { count: 0, bytes: 0 },
    connections: LARGE_CONNECTIONS,
    method: "PUT",
    bodyBytes: LARGE_BYTES,
    targets: listObjects(LARGE_OBJECTS),
    movedBytes: LARGE_BYTES,
  },
  isBoundByDisk: true,
  goals: [{ column: "perS", against: "radosgw", atLeast: 3 }],
});

/** Large objects out. */
export const getLarge = makeCase({
  name: "get-large",
  title: "GET 8 MiB",
  work: "4 connections, presigned GETs of 32 objects of 8 MiB in turn.",
  hasCeiling: true,
  load: {
    fill: { count: LARGE_OBJECTS, bytes: LARGE_BYTES },
    connections: LARGE_CONNECTIONS,
    method: "GET",
    bodyBytes: 0,
    targets: listObjects(LARGE_OBJECTS),
    movedBytes: LARGE_BYTES,
  },
  goals: [
    { column: "perS", against: "radosgw", atLeast: 3 },
    { column: "perS", against: "nginx", atLeast: 0.5 },
  ],
});
