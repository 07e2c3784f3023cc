// File systems of a test: one in memory with a size, which can be filled, and files and folders that cannot be written.
import { spawnSync } from "node:child_process";
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";

/**
 * Mounts a file system in memory until the test ends, and returns its folder; undefined where that is not permitted. `place`
 * is an empty folder; default: a new one.
 */
export function mountSmallDisk(
  context: TestContext,
  { mib, place }: { mib: number; place?: string },
): string | undefined {
  const folder = place ?? mkdtempSync(join(tmpdir(), "small-disk-"));
  const options = ["-t", "tmpfs", "-o", `size=${mib}m`, "tmpfs", folder];
  const isMounted = spawnSync("mount", options).status === 0;
  context.after(() => {
    if (isMounted) spawnSync("umount", ["-l", folder]);
    if (place === undefined) rmSync(folder, { recursive: true, force: true });
  });
  return isMounted ? folder : undefined;
}

/** Creates a file and writes to it until nothing is free. */
export function fillDisk(path: string): void {
  const descriptor = openSync(path, "w");
  for (let bytes = 64 * 1024; bytes >= 512; bytes /= 2) {
    try {
      for (;;) if (writeSync(descriptor, Buffer.alloc(bytes)) < bytes) break;
    } catch {
      // Smaller pieces may fit.
    }
  }
  closeSync(descriptor);
}

/**
 * Makes files unwritable, also those that are open (chattr(1), `+i`), until the test ends or the returned function is
 * called; undefined where that is not permitted.
 */
export function freezeFiles(
  context: TestContext,
  paths: readonly string[],
): (() => void) | undefined {
  const thaw = (): void => void spawnSync("chattr", ["-i", ...paths]);
  context.after(thaw);
  if (spawnSync("chattr", ["+i", ...paths]).status === 0) return thaw;
  thaw();
  return undefined;
}
