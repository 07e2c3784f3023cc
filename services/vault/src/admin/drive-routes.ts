// Drives and upkeep in the admin API.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import { readDiskSpace, type DiskSpace } from "../disk/free-space.ts";
import type { Store } from "../object-store.ts";
import { describeScrub, scrubAnswer, startScrub } from "./scrub-routes.ts";

const TAG = "Upkeep";
const count = z.int().min(0);
const driveAnswer = z.object({
  slot: count,
  folder: z.string(),
  state: z.enum(["present", "healing", "absent"]).describe("`healing`: present, but incomplete."),
  reason: z.string().nullable().describe("The reason of its absence."),
  total_bytes: z.number().nullable(),
  free_bytes: z.number().nullable(),
});

const maintenanceAnswer = z.object({
  scrub: scrubAnswer,
  garbage_bytes: count,
  quarantine: z.object({ files: count, bytes: count }),
  index_copy: z
    .object({
      copiedMs: z.int().optional().describe("Time of the last copy, epoch ms; absent without one."),
      findings: z.array(z.string()).describe("Damage of the index that the last copy found."),
    })
    .describe("The copy of the index of a single drive."),
  damaged_rows: count.describe("Index rows that did not match their checksum when read."),
  corrupt_blocks: count,
});

/** Options of the routes. */
export interface DriveRouteOptions {
  store: Store;
  /** The folder of a store without drives. */
  dataDir: string;
}

/** Routes of drives and upkeep. */
export function createDriveRoutes({ store, dataDir }: DriveRouteOptions): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/drives",
      summary: "Drives with their state and space",
      description: "A store without `drives` has one entry: the file system of its data folder.",
      tag: TAG,
      answer: z.object({ drives: z.array(driveAnswer) }),
      handle: () => ({ drives: listDrives(store, dataDir) }),
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/maintenance",
      summary: "Scrubbing, garbage, quarantine and the copy of the index",
      tag: TAG,
      answer: maintenanceAnswer,
      handle: () => describeMaintenance(store),
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/maintenance/scrub",
      summary: "Start a scrub; as POST /api/v1/scrub",
      tag: TAG,
      status: 202,
      answer: scrubAnswer,
      handle: () => startScrub(store),
    }),
  ];
}

function listDrives(store: Store, dataDir: string): z.input<typeof driveAnswer>[] {
  const drives = store.listDrives();
  const listed =
    drives.length > 0 ? drives : [{ slot: 0, folder: dataDir, state: "present" as const }];
  return listed.map((drive) => {
    const space = drive.state === "absent" ? undefined : tryReadSpace(drive.folder);
    return {
      slot: drive.slot,
      folder: drive.folder,
      state: drive.state,
      reason: "reason" in drive ? (drive.reason ?? null) : null,
      total_bytes: space?.totalBytes ?? null,
      free_bytes: space?.freeBytes ?? null,
    };
  });
}

// A drive may have just disappeared, before the drive monitor notices.
function tryReadSpace(folder: string): DiskSpace | undefined {
  try {
    return readDiskSpace(folder);
  } catch {
    return undefined;
  }
}

function describeMaintenance(store: Store) {
  const { garbageBytes, quarantine, indexCopy, damagedRows, corruptBlocks } = store.readStats();
  return {
    scrub: describeScrub(store),
    garbage_bytes: garbageBytes,
    quarantine,
    index_copy: indexCopy,
    damaged_rows: damagedRows,
    corrupt_blocks: corruptBlocks,
  };
}
