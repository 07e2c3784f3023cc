// Checksums of rows that carry mail: neither SQLite nor, by default, PostgreSQL notices a flipped bit in a value.
import { crc32 } from "node:zlib";
import { PlatformError } from "@platform/kernel/errors";
import type { BodyRow, DeliveryRow, MessageRow } from "./message.ts";
import type { NotifyDatabase } from "./schema.ts";

type Field = string | number | Uint8Array | null;

/** Checksum of fields that are never changed, in the column `checksum`. */
export function sumFields(fields: readonly Field[]): number {
  let sum = 0;
  for (const field of fields) {
    const bytes = field instanceof Uint8Array ? field : Buffer.from(String(field ?? ""));
    // The length keeps neighbours apart.
    sum = crc32(bytes, crc32(`${bytes.length}:`, sum));
  }
  return sum;
}

/** Checksum of a content with the fields of its message that are sent. */
export function sumBody(
  message: Pick<MessageRow, "id" | "sender" | "subject">,
  body: Pick<BodyRow, "content" | "variables">,
): number {
  return sumFields([message.id, message.sender, message.subject, body.content, body.variables]);
}

/** Checksum of the recipient of a delivery. */
export function sumDelivery(
  row: Pick<DeliveryRow, "message_id" | "position" | "kind" | "address" | "domain">,
): number {
  return sumFields([row.message_id, row.position, row.kind, row.address, row.domain]);
}

/** True if a row is as it was stored. Rows of earlier versions have no checksum. */
export function isWhole(stored: number | null, computed: number): boolean {
  return stored === null || stored === computed;
}

/** True for the error of `requireWhole`. */
export function isDamaged(error: unknown): error is PlatformError {
  return error instanceof PlatformError && error.fields["reason"] === "damaged";
}

/** Throws `internal`, and fails the health check of the database, if a row is not as it was stored. `place` names it. */
export function requireWhole(
  database: NotifyDatabase,
  place: string,
  stored: number | null,
  computed: number,
): void {
  if (isWhole(stored, computed)) return;
  const fault = `${place} does not match its checksum`;
  database.reportDamage(fault);
  throw new PlatformError("internal", `The database is damaged: ${fault}. Restore a backup.`, {
    fields: { reason: "damaged" },
  });
}
