// Settings in a configuration file: members of groups, and keys under other names.
import type { ConfigKeys } from "./define.ts";
import type { JsonPath } from "./json.ts";

/** Returns the names of keys by their other names. */
export function listOtherNames(keys: ConfigKeys): Map<string, string> {
  return new Map(
    Object.entries(keys).flatMap(([name, { otherNames = [] }]) =>
      otherNames.map((other) => [other, name] as const),
    ),
  );
}

/** Returns the settings of a file. The keys `smtp.host` and `smtp.port` are members of the group `smtp` in the file. */
export function listSettings(keys: ConfigKeys, document: object): [name: string, value: unknown][] {
  const groups = new Set(
    Object.keys(keys).flatMap((name) => (name.includes(".") ? [name.split(".")[0]] : [])),
  );
  return Object.entries(document).flatMap(([name, item]): [string, unknown][] => {
    const isGroup = groups.has(name) && typeof item === "object" && item !== null;
    if (!isGroup || Array.isArray(item)) return [[name, item]];
    return Object.entries(item as object).map(([member, value]) => [`${name}.${member}`, value]);
  });
}

/** Returns the path in the document of the path of a value, which begins with the name of its key. */
export function toDocumentPath(path: JsonPath): JsonPath {
  const [first, ...rest] = path;
  return typeof first === "string" ? [...first.split("."), ...rest] : path;
}
