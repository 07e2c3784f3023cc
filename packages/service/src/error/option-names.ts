// Names of options: a misspelled one is an error that names the right one, also without type checks.
import { suggestName } from "@platform/kernel/config";

/** Names of the options of each declaration. */
export const OPTION_NAMES = {
  server: ["port", "host", "bodyBytesMax", "timeoutMs", "requestsMax", "publicDocs"],
  database: ["name", "migrations", "url"],
  cache: ["ttl", "entriesMax", "bytesMax"],
  every: ["name"],
} as const;

/** Throws a TypeError at the first unknown name. `place` begins the message, such as `database notes`. */
export function checkOptionNames(
  place: string,
  options: object,
  kind: keyof typeof OPTION_NAMES,
): void {
  const known: readonly string[] = OPTION_NAMES[kind];
  const unknown = Object.keys(options).find((name) => !known.includes(name));
  if (unknown === undefined) return;
  throw new TypeError(`${place}: unknown option ${unknown}${suggestName(unknown, known)}`);
}
