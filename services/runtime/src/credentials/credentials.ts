// Credentials that `up` generates once and stores in the data directory, readable only by its owner.
import { chmod, mkdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { IdSource } from "@platform/kernel/ids";

const FILE_NAME = "credentials.env";
const LINE = /^([A-Z][A-Z0-9_]*)=([A-Za-z0-9_.~+/=-]+)$/;

/**
 * Returns the credentials by name. They are read from `credentials.env` in the folder; missing ones are generated and
 * stored. A variable of the environment takes precedence and is not stored. Throws if an existing file cannot be read.
 */
export async function loadCredentials(
  folder: string,
  names: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  ids: IdSource,
): Promise<Record<string, string>> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const path = join(folder, FILE_NAME);
  const stored = await readStored(path);
  const missing = names.filter((name) => !stored.has(name) && (env[name] ?? "") === "");
  if (missing.length > 0) {
    for (const name of missing) stored.set(name, ids.token());
    await writeStored(path, stored);
  }
  return Object.fromEntries(names.map((name) => [name, env[name] || stored.get(name) || ""]));
}

async function readStored(path: string): Promise<Map<string, string>> {
  const stored = new Map<string, string>();
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return stored;
    throw error;
  }
  // A copied or unpacked file may have another mode.
  if (process.platform !== "win32" && ((await stat(path)).mode & 0o077) !== 0)
    await chmod(path, 0o600);
  for (const [index, line] of text.split(/\r?\n/).entries()) {
    if (line === "" || line.startsWith("#")) continue;
    const match = LINE.exec(line);
    if (match === null) throw new Error(`${path}:${index + 1}: expected NAME=value`);
    stored.set(match[1]!, match[2]!);
  }
  return stored;
}

// Atomic: a partly written file would lock the operator out.
async function writeStored(path: string, stored: ReadonlyMap<string, string>): Promise<void> {
  const lines = [...stored].map(([name, value]) => `${name}=${value}\n`);
  const draft = `${path}.${process.pid}.new`;
  const head = "# Generated on the first start. These credentials grant full access.\n";
  await writeFile(draft, head + lines.join(""), { mode: 0o600, flag: "w" });
  await rename(draft, path);
}
