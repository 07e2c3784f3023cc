// Compares two JSON documents member by member.
import { REDACTED } from "@platform/kernel/log";

/** A difference at one place. */
export interface JsonDifference {
  /** Such as `$.items[0].name`. */
  path: string;
  /** JSON; undefined if the member is missing. */
  recorded: string | undefined;
  replayed: string | undefined;
}

/** Differences per body. */
const DIFFERENCES_MAX = 10;
const DEPTH_MAX = 256;

/**
 * The first differences of two documents; undefined if one is not JSON or nested too deep. The order of members has no
 * meaning. `ignored` contains places without `$.` and without indices, such as `items[].updated_at`.
 */
export function compareJson(
  recorded: string,
  replayed: string,
  ignored: ReadonlySet<string>,
): JsonDifference[] | undefined {
  const found: JsonDifference[] = [];
  try {
    compareValues(JSON.parse(recorded), JSON.parse(replayed), { shown: "$", place: "", depth: 0 });
  } catch {
    return undefined;
  }
  return found;

  function compareValues(
    one: unknown,
    other: unknown,
    at: { shown: string; place: string; depth: number },
  ): void {
    if (found.length >= DIFFERENCES_MAX || ignored.has(at.place)) return;
    if (at.depth > DEPTH_MAX) throw new Error("nested too deep");
    const depth = at.depth + 1;
    if (one === REDACTED && other !== undefined) return;
    if (Array.isArray(one) && Array.isArray(other)) {
      const length = Math.max(one.length, other.length);
      for (let index = 0; index < length; index++) {
        const place = `${at.place}[]`;
        compareValues(one[index], other[index], { shown: `${at.shown}[${index}]`, place, depth });
      }
      return;
    }
    if (isObject(one) && isObject(other)) {
      for (const name of new Set([...Object.keys(one), ...Object.keys(other)])) {
        const place = at.place === "" ? name : `${at.place}.${name}`;
        compareValues(read(one, name), read(other, name), {
          shown: `${at.shown}.${name}`,
          place,
          depth,
        });
      }
      return;
    }
    if (Object.is(one, other)) return;
    found.push({
      path: at.shown,
      recorded: JSON.stringify(one),
      replayed: JSON.stringify(other),
    });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function read(value: Record<string, unknown>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}
