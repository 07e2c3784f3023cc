// Formats of small files that only their owner may read.
import { replaceFileSync } from "@platform/kernel/files";

/** Replaces a file by a value as JSON, with mode 0600. */
export function writePrivateFile(path: string, value: unknown): void {
  replaceFileSync(path, `${JSON.stringify(value, null, 2)}\n`);
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
