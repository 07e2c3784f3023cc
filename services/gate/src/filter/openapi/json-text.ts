// JSON that requests and responses contain: parsed strictly, because others may parse it differently.

const NAME_CHARACTERS_MAX = 64;

/** The value of a text, or the reason why it has none. */
export type ReadJson = { value: unknown } | { fault: string };

/**
 * Parses a text. An object with a name twice is refused: this gateway would check one value, and an upstream might use the
 * other (RFC 8259 section 4).
 */
export function readJson(text: string): ReadJson {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return { fault: "is not JSON" };
  }
  const name = findRepeatedName(text);
  if (name === undefined) return { value };
  return { fault: `has the name ${JSON.stringify(name.slice(0, NAME_CHARACTERS_MAX))} twice` };
}

/** The first name that an object of a valid text has twice; undefined if there is none. Takes linear time. */
function findRepeatedName(text: string): string | undefined {
  /** Names of the objects around the present one; null for arrays. */
  const around: (Set<string> | null)[] = [];
  let names: Set<string> | null = null;
  let isName = false;
  for (let at = 0; at < text.length; at++) {
    switch (text[at]) {
      case "{":
      case "[":
        around.push(names);
        names = text[at] === "{" ? new Set() : null;
        isName = names !== null;
        break;
      case "}":
      case "]":
        names = around.pop() ?? null;
        isName = false;
        break;
      case ",":
        isName = names !== null;
        break;
      case '"': {
        const end = findStringEnd(text, at);
        if (isName) {
          const name = readName(text, at, end);
          if (names!.has(name)) return name;
          names!.add(name);
          isName = false;
        }
        at = end;
        break;
      }
      default:
    }
  }
  return undefined;
}

/** Position of the quotation mark that ends the string at `start`. */
function findStringEnd(text: string, start: number): number {
  for (let end = start; ;) {
    end = text.indexOf('"', end + 1);
    let escapes = 0;
    while (text[end - 1 - escapes] === "\\") escapes++;
    if (escapes % 2 === 0) return end;
  }
}

function readName(text: string, start: number, end: number): string {
  const raw = text.slice(start + 1, end);
  return raw.includes("\\") ? (JSON.parse(`"${raw}"`) as string) : raw;
}
