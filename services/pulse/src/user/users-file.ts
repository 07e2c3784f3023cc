// Reads the users of the wire protocols from the operator's file.
import { readFileSync } from "node:fs";
import { parseJson } from "@platform/kernel/config";
import { z } from "zod";
import { isTenant, TENANT_FORM } from "../topic/name.ts";

const USERS_MAX = 10_000;

const fileSchema = z
  .array(
    z.strictObject({
      name: z.string().min(1).max(255),
      password: z.string().min(1).max(1024),
      tenant: z
        .string()
        .refine((text) => text === "" || isTenant(text), `is no tenant: ${TENANT_FORM}`)
        .default(""),
    }),
  )
  .max(USERS_MAX);

/** A user with a password; `tenant` is "" for the operator. */
export type User = z.output<typeof fileSchema>[number];

/**
 * Reads `[{"name", "password", "tenant"?}]`. Throws an error that names the file and the mistake, never a password.
 */
export function readUsersFile(path: string): User[] {
  const parsed = parse(readText(path));
  if (parsed === undefined) throw new Error(`users_file ${path} is not valid JSON`);
  const result = fileSchema.safeParse(parsed.value);
  if (!result.success) {
    const [issue] = result.error.issues;
    const place = issue?.path.join(".") ?? "";
    throw new Error(`users_file ${path}: ${place === "" ? "the list" : place} ${issue?.message}`);
  }
  const names = new Set<string>();
  for (const { name } of result.data) {
    if (names.has(name)) throw new Error(`users_file ${path}: duplicate user ${name}`);
    names.add(name);
  }
  return result.data;
}

/** Adds the configured STOMP user, an operator. Throws if it is incomplete, or in the file as well. */
export function addStompUser(
  users: readonly User[],
  config: { stomp_user?: string | undefined; stomp_password?: string | undefined },
): readonly User[] {
  const { stomp_user: name, stomp_password: password } = config;
  if (name === undefined && password === undefined) return users;
  if (name === undefined || password === undefined) {
    throw new Error("stomp_user and stomp_password must be set together");
  }
  if (users.some((user) => user.name === name)) {
    throw new Error(`the stomp_user ${name} is in users_file as well`);
  }
  return [...users, { name, password, tenant: "" }];
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : "unknown error";
    throw new Error(`users_file ${path} cannot be read (${code})`, { cause: error });
  }
}

// The parser's message may quote the text, which contains passwords.
function parse(text: string): { value: unknown } | undefined {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}
