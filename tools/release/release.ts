// `npm run release`: the files of a release, in dist/release. Everything but another processor's packages is at hand.
//
//   platform-VERSION.tgz                    the package, for projects and npm
//   platform-VERSION-linux-PROCESSOR.tar.gz the package with Node, TypeScript and rolldown: unpack and start
//   platform-VERSION.cdx.json               what it is made of (CycloneDX)
//   platform-service-VERSION.vsix           the extension for Visual Studio Code
//   install.sh, SHA256SUMS
import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  copyFileSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { preparePackage } from "../../services/runtime/src/package/packed.ts";
import { isTarget, TARGETS, writeStandalone } from "./standalone.ts";
import { createBillOfMaterials } from "./bill-of-materials.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const HELP = `usage: npm run release [-- OPTIONS]

  --out FOLDER      default: dist/release; it is emptied
  --target TARGET   ${TARGETS.join(" or ")}; may be repeated; default: all of them
  --package-only    only platform-VERSION.tgz
  --help            show this help
`;

function fail(message: string): never {
  console.error(message);
  process.exit(1);
}

function readArguments() {
  try {
    const { values } = parseArgs({
      options: {
        out: { type: "string", default: join(ROOT, "dist/release") },
        target: { type: "string", multiple: true, default: [...TARGETS] },
        "package-only": { type: "boolean", default: false },
        help: { type: "boolean", default: false },
      },
    });
    return values;
  } catch (error) {
    return fail(`${(error as Error).message}\n\n${HELP}`);
  }
}

function hash(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

/** The script with the version that it installs. */
function writeInstaller(path: string, version: string): void {
  const text = readFileSync(join(ROOT, "deploy/install.sh"), "utf8");
  writeFileSync(path, text.replace("@VERSION@", version), { mode: 0o755 });
}

/** Writes the extension for editors; returns the name of its file. */
function writeExtension(out: string): string {
  execFileSync(process.execPath, [join(ROOT, "editors/build.ts"), "--out", out], { stdio: "pipe" });
  const [name] = readdirSync(out).filter((one) => one.endsWith(".vsix"));
  if (name === undefined) throw new Error("the extension was not written");
  return name;
}

async function release(): Promise<void> {
  const { out, target, "package-only": isPackageOnly, help } = readArguments();
  if (help) {
    console.log(HELP);
    return;
  }
  const packed = await preparePackage((line) => console.log(line));
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const names = [`platform-${packed.version}.tgz`];
  copyFileSync(packed.tarball, join(out, names[0]!));
  if (!isPackageOnly) {
    for (const one of target) {
      if (!isTarget(one)) fail(`--target ${one}: expected ${TARGETS.join(" or ")}`);
      const name = `platform-${packed.version}-${one}.tar.gz`;
      console.log(`Writing ${name}.`);
      await writeStandalone({ root: ROOT, packed, target: one, path: join(out, name) });
      names.push(name);
    }
    const bill = `platform-${packed.version}.cdx.json`;
    writeFileSync(join(out, bill), createBillOfMaterials(ROOT));
    writeInstaller(join(out, "install.sh"), packed.version);
    names.push(bill, "install.sh", writeExtension(out));
  }
  const sums = names.map((name) => `${hash(join(out, name))}  ${name}\n`);
  writeFileSync(join(out, "SHA256SUMS"), sums.join(""));
  for (const name of names) {
    console.log(`${(statSync(join(out, name)).size / 1e6).toFixed(1).padStart(6)} MB  ${name}`);
  }
}

try {
  await release();
} catch (error) {
  fail((error as Error).message);
}
