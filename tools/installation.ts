// Compares node_modules with package-lock.json: a stale installation makes types, lint and tests fail with misleading errors.
import { existsSync, readFileSync } from "node:fs";

interface Lock {
  packages: Record<string, { version?: string; link?: boolean; optional?: boolean }>;
}

/** Names packages that are missing or of another version; undefined if the installation is complete. */
export function explainStaleInstallation(): string | undefined {
  const path = "node_modules/.package-lock.json";
  const installed = existsSync(path) ? readLock(path).packages : {};
  const stale = Object.entries(readLock("package-lock.json").packages)
    // Optional packages may be for another platform.
    .filter(([name, { link, optional }]) => name.includes("node_modules/") && !link && !optional)
    .filter(([name, { version }]) => installed[name]?.version !== version)
    .map(([name]) => name.slice(name.lastIndexOf("node_modules/") + "node_modules/".length));
  if (stale.length === 0) return undefined;
  const more = stale.length > 3 ? ` and ${stale.length - 3} more` : "";
  return `node_modules does not match package-lock.json: ${stale.slice(0, 3).join(", ")}${more}; run npm ci`;
}

function readLock(path: string): Lock {
  return JSON.parse(readFileSync(path, "utf8")) as Lock;
}
