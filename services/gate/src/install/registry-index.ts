// The documents of a registry of static files.
//
//   modules/NAME@VERSION.wasm   the modules, put there by hand
//   middleware/NAME.json        written here: newest version, and all versions with their digests
import { createHash } from "node:crypto";
import { mkdir, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { replaceFile } from "@platform/kernel/files";
import { compileHttpModule } from "@platform/wasm/http";
import { z } from "zod";
import { GUEST_NAME } from "../config/route-middleware.ts";

const FILE = /^([a-z0-9][a-z0-9._-]{0,62})@([0-9A-Za-z][0-9A-Za-z.+-]{0,63})\.wasm$/;
// Shown on a terminal, which it must not control.
const VERSION = /^[0-9A-Za-z][0-9A-Za-z.+-]{0,63}$/;

const versionSchema = z.object({
  version: z.string().regex(VERSION),
  url: z.string().max(2_048),
  sha256: z.string().regex(/^[0-9a-f]{64}$/),
});

/** The document of one middleware. URLs are relative to it, or absolute. */
export const registryDocument = versionSchema.extend({
  name: z.string().regex(GUEST_NAME),
  versions: z.array(versionSchema).max(1_000).optional(),
});

/** One version of a middleware. */
export type RegistryVersion = z.infer<typeof versionSchema>;

/** Writes the documents of the modules in a folder. Returns their names. Throws if a module is not usable. */
export async function indexRegistry(folder: string): Promise<string[]> {
  const found = new Map<string, RegistryVersion[]>();
  for (const file of await readdir(join(folder, "modules"))) {
    const [, name, version] = FILE.exec(file) ?? [];
    if (name === undefined || version === undefined) continue;
    const bytes = await readFile(join(folder, "modules", file));
    try {
      compileHttpModule(bytes);
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause);
      throw new Error(`${join(folder, "modules", file)}: ${reason}`, { cause });
    }
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const versions = found.get(name) ?? [];
    found.set(name, versions);
    versions.push({ version, url: `../modules/${encodeURIComponent(file)}`, sha256 });
  }
  await mkdir(join(folder, "middleware"), { recursive: true });
  for (const [name, versions] of found) {
    versions.sort((a, b) => compareVersions(b.version, a.version));
    const document = { name, ...versions[0]!, versions };
    const path = join(folder, "middleware", `${name}.json`);
    await replaceFile(path, `${JSON.stringify(document, null, 2)}\n`);
  }
  return [...found.keys()].sort();
}

// By their numbers; a version with a suffix comes before the one without (semver section 11).
function compareVersions(a: string, b: string): number {
  const collator = new Intl.Collator("en", { numeric: true });
  const [coreA = "", ...restA] = a.split("-");
  const [coreB = "", ...restB] = b.split("-");
  const byCore = collator.compare(coreA, coreB);
  if (byCore !== 0) return byCore;
  if (restA.length === 0 || restB.length === 0) return restB.length - restA.length;
  return collator.compare(restA.join("-"), restB.join("-"));
}
