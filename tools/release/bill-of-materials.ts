// The software bill of materials: all packages that a release contains or brings, from package-lock.json, as CycloneDX 1.6
// (https://cyclonedx.org/docs/1.6/json/).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  readLockEntries,
  type LockEntry,
} from "../../services/runtime/src/package/lock-entries.ts";

interface Lock {
  readonly version: string;
  readonly packages: Readonly<Record<string, LockEntry>>;
}

const INSTALLED = "node_modules/";

/** Returns the document as JSON, the same for the same lock file. */
export function createBillOfMaterials(root: string): string {
  const lock = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as Lock;
  const { bundled, optional } = readLockEntries(root);
  const brought = new Set([...Object.keys(bundled), ...Object.keys(optional)]);
  const components = Object.entries(lock.packages)
    .filter(([path, { link }]) => path.includes(INSTALLED) && link !== true)
    .map(
      ([path, entry]) =>
        [path.slice(path.lastIndexOf(INSTALLED) + INSTALLED.length), entry] as const,
    )
    .filter(([name, { dev }]) => dev !== true || brought.has(name))
    .map(([name, entry]) => describe(name, entry, name in optional));
  const unique = new Map(components.map((one) => [one.purl, one]));
  const document = {
    bomFormat: "CycloneDX",
    specVersion: "1.6",
    version: 1,
    metadata: {
      component: {
        type: "application",
        "bom-ref": "platform",
        name: "platform",
        version: lock.version,
        licenses: [{ expression: "Apache-2.0" }],
      },
    },
    components: [...unique.values()].toSorted((a, b) => (a.purl < b.purl ? -1 : 1)),
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

function describe(path: string, entry: LockEntry, isOptional: boolean) {
  const [group, name] = path.startsWith("@") ? path.split("/") : [undefined, path];
  // https://github.com/package-url/purl-spec/blob/main/types-doc/npm-definition.md
  const purl = `pkg:npm/${path.replace("@", "%40")}@${entry.version}`;
  const { integrity, license } = entry as { integrity?: string; license?: string };
  const [algorithm, digest = ""] = integrity?.split("-", 2) ?? [];
  return {
    type: "library",
    "bom-ref": purl,
    ...(group === undefined ? {} : { group }),
    name,
    version: entry.version,
    scope: isOptional ? "optional" : "required",
    purl,
    ...(algorithm === "sha512"
      ? { hashes: [{ alg: "SHA-512", content: Buffer.from(digest, "base64").toString("hex") }] }
      : {}),
    ...(license === undefined ? {} : { licenses: [{ expression: license }] }),
  };
}
