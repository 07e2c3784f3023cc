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

/** Formats an environment file, for shells and for readers of .env files, to which # begins a comment. */
export function formatVariables(
  variables: readonly (readonly [name: string, value: string])[],
): string {
  return variables.map(([name, value]) => `${name}=${quote(value)}\n`).join("");
}

/** Parses a file of {@link formatVariables}. */
export function parseVariables(text: string): Record<string, string> {
  const pairs = text.split("\n").flatMap((line) => {
    const [, name, quoted, bare] = /^([A-Z0-9_]+)=(?:"(.*)"|(.*))$/.exec(line) ?? [];
    return name === undefined ? [] : [[name, quoted ?? bare ?? ""]];
  });
  return Object.fromEntries(pairs) as Record<string, string>;
}

function quote(value: string): string {
  return /^[\w./:@,+=-]*$/.test(value) ? value : `"${value}"`;
}
