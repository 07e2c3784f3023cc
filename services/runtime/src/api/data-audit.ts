// Audit entries of the data pages: an entry is stored before the answer is sent.
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
  const { audit } = await data.openStore();
  const name = caller.kind === "user" ? caller.claims.username : undefined;
  const detail = { ...event.detail, ...(name === undefined ? {} : { name }) };
  const target = `${project}/${database}`;
  await audit.record({ ...event, actor: nameActor(caller), target, detail });
}
