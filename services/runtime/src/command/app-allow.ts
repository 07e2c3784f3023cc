// `platform app allow`: the roles of its users that an application may act with.
import { allowRoles } from "../client/application.ts";
import { findTarget } from "../client/target.ts";

/** Options of {@link runAppAllow}. */
export interface AppAllowOptions {
  data: string;
  name: string;
  /** Roles in addition to the application's own. */
  roles: readonly string[];
}

/** Adds the application's own role and others to those that it may act with, and prints all of them. */
export async function runAppAllow({ data, name, roles }: AppAllowOptions): Promise<void> {
  const allowed = await allowRoles(await findTarget(data), name, roles);
  process.stderr.write(
    `application ${name} may act with these roles of its users: ${allowed.join(", ")}; it must request the scope platform:use at the sign-in\n`,
  );
}
