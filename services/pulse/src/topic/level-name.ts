// Topic names of MQTT, which separates levels by `/`, mapped to the broker's, which use `.`.

/*
 *     MQTT                       broker
 *     home/kitchen/temperature   home.kitchen.temperature
 *     firmware/v1.2              firmware.v1_x2E2            other characters that the broker's names may not hold are `_xHH`
 *     home/living room           home.living_x20room
 *     __own                      _x5F_own                    names that begin with `__` are the broker's
 *     a_x2Eb                     a_x5Fx2Eb                   so that the mapping is reversible
 *     /                          _x2F                        `.` and `..` are no names
 *
 * The escaped characters are ASCII, one byte each. Letters of any script stay as they are.
 */

const FOREIGN =
  // oxlint-disable-next-line no-control-regex -- naming the control characters is the point
  /[\u0000-\u0020\u007f:*#+\\"$.]|_x(?:[01][0-9A-F]|20|7F|3A|2A|23|2B|5C|22|24|2E|2F|5F)/g;
const ESCAPE = /_x([01][0-9A-F]|20|7F|3A|2A|23|2B|5C|22|24|2E|2F|5F)/g;
/** Texts that only need their separators exchanged. */
const SIMPLE = /^[A-Za-z0-9/-]+$/;

/** The broker's name for a topic of MQTT. It may still be too long: see `explainTopicName`. */
export function fromLevelName(text: string): string {
  if (text === "/" || text === "//") return `_x2F${".".repeat(text.length - 1)}`;
  if (SIMPLE.test(text)) return text.replaceAll("/", ".");
  const escaped = text.replace(FOREIGN, (found) =>
    found.length === 1 ? mark(found) : `${mark("_")}${found.slice(1)}`,
  );
  const name = escaped.replaceAll("/", ".");
  return name.startsWith("__") ? `${mark("_")}${name.slice(1)}` : name;
}

/** Reverses `fromLevelName`. */
export function toLevelName(name: string): string {
  const levels = name.replaceAll(".", "/");
  if (!levels.includes("_x")) return levels;
  return levels.replace(ESCAPE, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)));
}

function mark(character: string): string {
  const hex = character.charCodeAt(0).toString(16).toUpperCase();
  return `_x${hex.padStart(2, "0")}`;
}
