// The file system of a container image: the executable and only what it requires.
import { execFileSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";

/** User and group of the service. */
export const IMAGE_USER = 10_001;

/** Files of name resolution and of TLS that programs read by these names. */
const FILES: Readonly<Record<string, string>> = {
  "etc/passwd": `root:x:0:0:root:/:/\nservice:x:${IMAGE_USER}:${IMAGE_USER}:service:/:/\n`,
  "etc/group": `root:x:0:\nservice:x:${IMAGE_USER}:\n`,
  "etc/nsswitch.conf": "hosts: files dns\n",
};
const CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt";

/**
 * Fills a folder, which is emptied before, with the executable as `/service`, the libraries that `ldd` lists, and the
 * system's CA certificates. Throws if a library is missing.
 */
export function writeImage(executable: string, folder: string): void {
  rmSync(folder, { recursive: true, force: true });
  for (const name of ["data", "tmp"]) mkdirSync(join(folder, name), { recursive: true });
  chmodSync(join(folder, "tmp"), 0o1777);
  copyFileSync(executable, join(folder, "service"));
  for (const path of listLibraries(executable)) copyInto(folder, path);
  if (existsSync(CERTIFICATES)) copyInto(folder, CERTIFICATES);
  for (const [path, text] of Object.entries(FILES)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
}

/** Paths of the shared libraries of a program, with the loader. */
function listLibraries(program: string): string[] {
  let text: string;
  try {
    text = execFileSync("ldd", [program], { encoding: "utf8" });
  } catch (error) {
    throw new Error("the libraries cannot be listed: images are built on Linux, with ldd", {
      cause: error,
    });
  }
  const missing = /^\s*(\S+) => not found/m.exec(text)?.[1];
  if (missing !== undefined) throw new Error(`the library ${missing} is not installed`);
  return Array.from(text.matchAll(/(\/\S+) \(0x[\da-f]+\)/g), ([, path = ""]) => path);
}

function copyInto(folder: string, path: string): void {
  const target = join(folder, path);
  mkdirSync(dirname(target), { recursive: true });
  // Libraries are links to files with their version.
  copyFileSync(realpathSync(path), target);
}
