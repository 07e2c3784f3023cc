// The owner of a lease: the successor of a process that was killed releases the leases of that one.
import { createHash } from "node:crypto";
import type { ServiceLifecycle } from "@platform/chassis";
import { claimReplica } from "@platform/kernel/files";
import type { Logger } from "@platform/kernel/log";

/**
 * Value of the column `leased` in rows that are leased by the only process of a database, and in those that were given back
 * although their mail may be on its way.
 */
export const SINGLE_MARK = 1;

/** The place of a mark. */
export interface MarkOptions {
  kind: "sqlite" | "postgres";
  dataDir: string;
  log: Logger;
  lifecycle: Pick<ServiceLifecycle, "onDrain">;
}

/**
 * Returns the value of `leased` in rows that this process leases. On PostgreSQL, which several processes may use, it belongs to
 * an identity in the data folder.
 */
export function claimMark({ kind, dataDir, log, lifecycle }: MarkOptions): number {
  if (kind === "sqlite") return SINGLE_MARK;
  const replica = claimReplica(dataDir, (error) =>
    log.info("the data folder cannot keep the identity of this process", {
      error,
      effect:
        "if it dies, what it was delivering continues when the leases end: after 15 minutes at most",
    }),
  );
  lifecycle.onDrain("identity", () => replica.release(), "database");
  return markOf(replica.id);
}

/** 2 to 2^31 - 1: the column has 32 bits. */
function markOf(id: string): number {
  const bits = createHash("sha256").update(id).digest().readUInt32BE(0) >>> 1;
  return Math.max(SINGLE_MARK + 1, bits);
}
