// Findings after an upgrade for the operator, read from the database without the running service.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { z } from "zod";
import { ACTING_ROLES } from "./oauth/core/client-metadata.ts";

const metadataSchema = z.looseObject({
  client_name: z.string().optional(),
  grant_types: z.array(z.string()).default(["authorization_code"]),
  [ACTING_ROLES]: z.array(z.string()).optional(),
});

/**
 * Names of the applications of `platform app add` that users sign in to and that may not act with any role of theirs, as
 * those which were added before tokens were limited to acting roles. Empty if identity has no SQLite database in `folder`.
 */
export function findApplicationsWithoutRoles(folder: string): string[] {
  const path = join(folder, "auth.db");
  if (!existsSync(path)) return [];
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = database
      .prepare(
        `select metadata, role from auth_oauth_clients
         join auth_role_bindings on subject_kind = 'client' and subject_id = client_id
         where is_dynamic = 0 order by client_id`,
      )
      .all();
    return rows.flatMap(({ metadata, role }) => {
      const { client_name: name, ...client } = metadataSchema.parse(JSON.parse(String(metadata)));
      const isApplication = name !== undefined && role === `app-${name}`;
      const hasUsers = client.grant_types.includes("authorization_code");
      return isApplication && hasUsers && client[ACTING_ROLES] === undefined ? [name] : [];
    });
  } finally {
    database.close();
  }
}
