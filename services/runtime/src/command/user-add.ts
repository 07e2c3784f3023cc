// `platform user add`: creates an account.
import { randomBytes } from "node:crypto";
import { ApiError, type ApiClient } from "../client/api-client.ts";
import { connectIdentity } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";
import { readSecretInput } from "./read-secret-input.ts";

const PASSWORD_BYTES = 15;

/** Options of {@link runUserAdd}. */
export interface UserAddOptions {
  data: string;
  username: string;
  email: string | undefined;
  name: string | undefined;
  roles: readonly string[];
  /** Read the password from the standard input instead of generating one. */
  passwordStdin: boolean;
}

/** Creates the account, binds its roles, and prints a generated password once. */
export async function runUserAdd(options: UserAddOptions): Promise<void> {
  const identity = await connectIdentity(await findTarget(options.data));
  await requireRoles(identity, options.roles);
  const password = options.passwordStdin ? await readSecretInput() : generatePassword();
  const { username, email, name, roles } = options;
  const { user } = (await identity
    .call("POST", "/api/v1/users", { username, password, email, name })
    .catch((error: unknown) => {
      throw explainTaken(error, username);
    })) as { user: { id: string } };
  if (roles.length > 0) {
    try {
      await identity.call("POST", `/api/v1/rbac/users/${user.id}/roles`, { roles });
    } catch (error) {
      await identity.call("DELETE", `/api/v1/users/${user.id}`);
      throw error;
    }
  }
  process.stderr.write(
    `user ${username} added${roles.length === 0 ? "" : ` with ${roles.join(", ")}`}\n`,
  );
  if (!options.passwordStdin)
    process.stdout.write(`PLATFORM_USER=${username}\nPLATFORM_PASSWORD=${password}\n`);
}

async function requireRoles(identity: ApiClient, roles: readonly string[]): Promise<void> {
  if (roles.length === 0) return;
  const answer = (await identity.call("GET", "/api/v1/rbac/roles")) as {
    roles: { name: string }[];
  };
  const known = answer.roles.map((role) => role.name);
  const missing = roles.find((role) => !known.includes(role));
  if (missing !== undefined)
    throw new Error(`there is no role ${JSON.stringify(missing)}; known are ${known.join(", ")}`);
}

function explainTaken(error: unknown, username: string): unknown {
  if (error instanceof ApiError && error.status === 409)
    return new Error(`there is already a user ${JSON.stringify(username)}: choose another name`);
  return error;
}

function generatePassword(): string {
  return randomBytes(PASSWORD_BYTES).toString("base64url");
}
