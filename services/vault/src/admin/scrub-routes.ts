// Scrubbing in the admin API: start a round, read its progress and the result of the last complete one.
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { Store } from "../object-store.ts";
import type { CompleteScrub } from "../upkeep/last-scrub.ts";
import type { ScrubState } from "../upkeep/maintenance.ts";

const SCRUB_PATH = "/api/v1/scrub";
/** Damaged bodies that an answer lists. */
const NAMED_MAX = 100;

const count = z.int().min(0);

/** The running scrub and the last complete one. */
export const scrubAnswer = z
  .object({
    state: z.enum(["idle", "running"]),
    progress: z
      .object({
        started_at: z.string(),
        files_done: count,
        files_total: count,
        bytes_done: count,
      })
      .nullable(),
    last: z
      .object({
        started_at: z.string(),
        ended_at: z.string(),
        files: count,
        bytes: count,
        healed: count,
        damaged: count,
        missing: count,
        damaged_blobs: z.array(z.string()).describe(`At most ${NAMED_MAX}.`),
        missing_blobs: z.array(z.string()).describe(`At most ${NAMED_MAX}.`),
        quarantined: count.describe("Unreferenced files that were moved to quarantine."),
        unknown: count.describe("Unreferenced files that stay, because the quarantine is full."),
      })
      .nullable(),
  })
  .meta({ id: "Scrub" });

type ScrubAnswer = z.infer<typeof scrubAnswer>;

/** Routes of the scrubber. */
export function createScrubRoutes(store: Store): ApiRoute[] {
  return [
    defineRoute({
      method: "POST",
      path: SCRUB_PATH,
      tag: "Maintenance",
      summary: "Start a scrub",
      description:
        "Reads all stored data against its checksums and heals damage where it can. Joins a running scrub.",
      status: 202,
      answer: scrubAnswer,
      handle: () => startScrub(store),
    }),
    defineRoute({
      method: "GET",
      path: SCRUB_PATH,
      tag: "Maintenance",
      summary: "Progress of the running scrub, and the result of the last complete one",
      answer: scrubAnswer,
      handle: () => describeScrub(store),
    }),
  ];
}

/** Starts a scrub, or joins the running one. */
export function startScrub(store: Store): ScrubAnswer {
  // The store logs failures; the time of the last complete scrub shows them as well.
  void store.maintenance.scrub().catch(() => undefined);
  return describeScrub(store);
}

/** The running scrub and the last complete one. */
export function describeScrub(store: Store): ScrubAnswer {
  return describeState(store.maintenance.readScrub());
}

function describeState({ running, last }: ScrubState): ScrubAnswer {
  return {
    state: running === undefined ? "idle" : "running",
    progress:
      running === undefined
        ? null
        : {
            started_at: new Date(running.startedMs).toISOString(),
            files_done: running.filesDone,
            files_total: running.filesTotal,
            bytes_done: running.bytesDone,
          },
    last: last === undefined ? null : describeLast(last),
  };
}

function describeLast(last: CompleteScrub): ScrubAnswer["last"] {
  const { damaged, missing } = last;
  const name = (ids: readonly number[]) => ids.slice(0, NAMED_MAX).map((id) => id.toString(16));
  return {
    started_at: new Date(last.startedMs).toISOString(),
    ended_at: new Date(last.endedMs).toISOString(),
    files: last.files,
    bytes: last.bytes,
    healed: last.healed,
    damaged: damaged.length,
    missing: missing.length,
    damaged_blobs: name(damaged),
    missing_blobs: name(missing),
    quarantined: last.quarantined,
    unknown: last.unknown,
  };
}
