// Audit entries of the data pages: an entry is stored before the answer is sent, and that of a change before the change.
import { randomUUID } from "node:crypto";
import type { AuditEvent } from "@platform/kernel/audit";
import type { Caller } from "@platform/kernel/identity";
import type { DatabaseName, DataService } from "../data/data-service.ts";

/** The subject of a caller, as audit logs name it. */
export function nameActor(caller: Caller): string {
  if (caller.kind !== "user") return "operator";
  const { sub, client_id: client } = caller.claims.all as { sub?: unknown; client_id?: unknown };
  if (typeof sub === "string") return `user:${sub}`;
  return typeof client === "string" ? `client:${client}` : "user";
}

/** Stores an entry about a database. Rejects if it cannot be stored. */
export async function recordData(
  data: DataService,
  caller: Caller,
  { project, database }: DatabaseName,
  event: Pick<AuditEvent, "action" | "outcome" | "detail">,
): Promise<void> {
  await recordEvent(data, caller, { ...event, target: `${project}/${database}` });
}

/** Stores an entry about a project, or another target. Rejects if it cannot be stored. */
export async function recordEvent(
  data: DataService,
  caller: Caller,
  event: Pick<AuditEvent, "action" | "outcome" | "detail" | "target">,
): Promise<void> {
  const { audit } = await data.openStore();
  const name = caller.kind === "user" ? caller.claims.username : undefined;
  const detail = { ...event.detail, ...(name === undefined ? {} : { name }) };
  await audit.record({ ...event, actor: nameActor(caller), detail });
}

/** A change, as its entries describe it. */
export interface AuditedChange<Result> {
  action: string;
  /** Known before the change. */
  detail: Readonly<Record<string, unknown>>;
  /** Makes the change. */
  run: () => Promise<Result>;
  /** Known after it. */
  describe: (result: Result) => Readonly<Record<string, unknown>>;
}

/**
 * Makes a change between two entries with the same `change`: the first, with `state: "begun"`, is stored before anything
 * changes, so that no end of this process loses it; the second says how the change has ended. Rejects without a change if
 * the first cannot be stored.
 */
export async function auditChange<Result>(
  data: DataService,
  caller: Caller,
  name: DatabaseName,
  { action, detail, run, describe }: AuditedChange<Result>,
): Promise<Result> {
  const change = randomUUID();
  const begun = { ...detail, change, state: "begun" };
  await recordData(data, caller, name, { action, detail: begun });
  let result: Result;
  try {
    result = await run();
  } catch (error) {
    await recordData(data, caller, name, {
      action,
      outcome: "failure",
      detail: { ...detail, change },
    });
    throw error;
  }
  await recordData(data, caller, name, {
    action,
    detail: { ...detail, ...describe(result), change },
  });
  return result;
}
