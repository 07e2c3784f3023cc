// Small files that only their owner may read, replaced atomically.
import { renameSync, writeFileSync } from "node:fs";

/** Writes a value as JSON with mode 0600. */
export function writePrivateFile(path: string, value: unknown): void {
  writePrivateText(path, `${JSON.stringify(value, null, 2)}\n`);
}

/** Writes a text with mode 0600. */
export function writePrivateText(path: string, text: string): void {
  const draft = `${path}.${process.pid}.new`;
  writeFileSync(draft, text, { mode: 0o600 });
  renameSync(draft, path);
}
