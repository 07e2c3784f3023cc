// Versions of a route that were changed from one origin by two people, member by member.

/** Settings of a route, as its configuration has them. */
export type Settings = Readonly<Record<string, unknown>>;

/** One of two versions. */
export type Side = "mine" | "theirs";

/** A member that differs between the versions; undefined where it is absent. */
export interface Difference {
  name: string;
  base: unknown;
  mine: unknown;
  theirs: unknown;
  /** The version that changed it; undefined if both did, in different ways. */
  changedBy: Side | undefined;
}

/** Lists the members that one or both have changed. */
export function compareVersions(base: Settings, mine: Settings, theirs: Settings): Difference[] {
  const names = new Set([...Object.keys(base), ...Object.keys(theirs), ...Object.keys(mine)]);
  return [...names].flatMap((name) => {
    const values = { base: own(base, name), mine: own(mine, name), theirs: own(theirs, name) };
    if (isSame(values.mine, values.theirs)) return [];
    const isMine = !isSame(values.mine, values.base);
    const isTheirs = !isSame(values.theirs, values.base);
    const changedBy = isMine && isTheirs ? undefined : isMine ? "mine" : "theirs";
    return [{ name, ...values, changedBy }];
  });
}

/** Their version with the members that are chosen from mine. */
export function mergeVersions(
  theirs: Settings,
  differences: readonly Difference[],
  choose: (difference: Difference) => Side,
): Settings {
  const merged = new Map(Object.entries(theirs));
  for (const difference of differences) {
    if (choose(difference) === "theirs") continue;
    if (difference.mine === undefined) merged.delete(difference.name);
    else merged.set(difference.name, difference.mine);
  }
  return Object.fromEntries(merged);
}

/** True if two JSON values are equal, whatever the order of members. */
export function isSame(one: unknown, other: unknown): boolean {
  return one === other || JSON.stringify(one, sortMembers) === JSON.stringify(other, sortMembers);
}

function sortMembers(_name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)));
}

function own(settings: Settings, name: string): unknown {
  return Object.hasOwn(settings, name) ? settings[name] : undefined;
}
