// Wildcard patterns for topic names: `*` matches one level, `#` zero or more.
import { PlatformError } from "@platform/kernel/errors";
import { explainTopicName, TOPIC_NAME_BYTES_MAX } from "./name.ts";

/** Maximum number of levels of a pattern. */
const LEVELS_MAX = 64;

/** True if a subscription's text is a pattern, false if it is a name. */
export function isPattern(text: string): boolean {
  return text.includes("*") || text.includes("#");
}

/**
 * Compiles a pattern: levels separated by `.`, each a literal, `*` (exactly one level) or `#` (zero or more levels).
 * Throws `validation_failed` for wildcards inside a level and for invalid names.
 */
export function compilePattern(text: string): (name: string) => boolean {
  if (Buffer.byteLength(text) > TOPIC_NAME_BYTES_MAX) throw refuse("it is too long");
  const levels = text.split(".");
  if (levels.length > LEVELS_MAX) throw refuse(`it has more than ${LEVELS_MAX} levels`);
  for (const level of levels) {
    if (level === "*" || level === "#") continue;
    if (isPattern(level)) throw refuse("a wildcard stands for whole levels");
    // Levels may be empty, as in names.
    const reason = level === "" ? undefined : explainTopicName(level);
    if (reason !== undefined) throw refuse(reason);
  }
  return (name) => matchLevels(levels, name.split("."));
}

// One row of the dynamic programming table at a time, so many `#` cost levels × levels.
function matchLevels(pattern: readonly string[], name: readonly string[]): boolean {
  let row = Array.from({ length: name.length + 1 }, () => false);
  row[0] = true;
  for (const level of pattern) {
    const next = Array.from({ length: name.length + 1 }, () => false);
    next[0] = level === "#" && row[0] === true;
    for (let at = 1; at <= name.length; at++) {
      if (level === "#") next[at] = row[at] === true || next[at - 1] === true;
      else next[at] = row[at - 1] === true && (level === "*" || level === name[at - 1]);
    }
    row = next;
  }
  return row[name.length] === true;
}

function refuse(reason: string): PlatformError {
  return new PlatformError("validation_failed", `The topic pattern is invalid: ${reason}.`);
}
