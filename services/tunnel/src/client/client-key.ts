// The client's key: a secret by which the relay recognizes this installation and gives it its names back.
import { randomBytes } from "node:crypto";
import { mkdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { replaceFileSync } from "@platform/kernel/files";

/** Reads the key from `folder`, creating both if they are missing. */
export function loadClientKey(folder: string | undefined): string {
  const base = folder ?? getDefaultFolder();
  const path = join(base, "client.key");
  const known = readKey(path);
  if (known !== undefined) return known;
  const key = randomBytes(32).toString("base64url");
  mkdirSync(base, { recursive: true, mode: 0o700 });
  replaceFileSync(path, `${key}\n`);
  return readKey(path) ?? key;
}

function readKey(path: string): string | undefined {
  try {
    const key = readFileSync(path, "utf8").trim();
    return /^[A-Za-z0-9_-]{22,128}$/.test(key) ? key : undefined;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}

function getDefaultFolder(): string {
  const state = process.env["XDG_STATE_HOME"] || join(homedir(), ".local", "state");
  return join(state, "platform-tunnel");
}
