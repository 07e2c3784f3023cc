// Wildcard patterns over topic names: `*` is one level, `#` zero or more.
import { PlatformError } from "@platform/kernel/errors";
import { explainTopicName, TOPIC_NAME_BYTES_MAX } from "./name.ts";

/** Levels that a pattern may have. */
const LEVELS_MAX = 64;

/** Whether a subscription's text is a pattern; else it is a name. */
export function isPattern(text: string): boolean {
  return text.includes("*") || text.includes("#");
}

/**
 * Compiles a pattern: levels separated by `.`, each a literal, `*` (exactly one level) or `#` (zero or more levels).
 * Throws `validation_failed` for wildcards inside of a level and for names that no topic can have.
 */
export function compilePattern(text: string): (name: string) => boolean {
  if (Buffer.byteLength(text) > TOPIC_NAME_BYTES_MAX) throw refuse("it is too long");
  const levels = text.split(".");
  if (levels.length > LEVELS_MAX) throw refuse(`it has more than ${LEVELS_MAX} levels`);
  for (const level of levels) {
    if (level === "*" || level === "#") continue;
    if (isPattern(level)) throw refuse("a wildcard stands for whole levels");
    // As in names, a level may be empty.
    const reason = level === "" ? undefined : explainTopicName(level);
    if (reason !== undefined) throw refuse(reason);
  }
  return (name) => matchLevels(levels, name.split("."));
}

// A row of the classic table at a time, so that many `#` cost levels × levels and no more.
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
  return new PlatformError("validation_failed", `This is no pattern of topics: ${reason}.`);
}
