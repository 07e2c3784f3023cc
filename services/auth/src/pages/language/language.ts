// Languages of the pages.
import { DE } from "./de.ts";
import { EN, type Messages } from "./en.ts";

/** A language with its messages. */
export interface Language {
  /** BCP 47 tag, for `lang`. */
  readonly tag: string;
  readonly messages: Messages;
  /** Formats a time for readers, in UTC because their time zone is unknown. */
  readonly formatTime: (iso: string) => string;
}

const HEADER_CHARS_MAX = 256;
const TAGS_MAX = 16;
const LANGUAGES: readonly Language[] = [create("en", EN), create("de", DE)];

/** BCP 47 tags of the available languages. */
export const LANGUAGE_TAGS: readonly string[] = LANGUAGES.map(({ tag }) => tag);

/** The first available language among space-separated tags (as in `ui_locales`); `undefined` if none is available. */
export function findLanguage(tags: string): Language | undefined {
  for (const tag of tags.slice(0, HEADER_CHARS_MAX).toLowerCase().split(" ").slice(0, TAGS_MAX)) {
    const found = findTag(tag);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The available language that `Accept-Language` (RFC 9110 section 12.5.4) prefers; English by default. */
export function chooseLanguage(acceptLanguage: string | undefined): Language {
  const wanted = (acceptLanguage ?? "")
    .slice(0, HEADER_CHARS_MAX)
    .split(",")
    .map((item) => {
      const [range = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((part) => part.startsWith("q="));
      return { range, weight: weight === undefined ? 1 : Number(weight.slice(2)) || 0 };
    })
    .filter(({ weight }) => weight > 0)
    .sort((a, b) => b.weight - a.weight);
  for (const { range } of wanted) {
    const found = findTag(range);
    if (found !== undefined) return found;
  }
  return LANGUAGES[0]!;
}

function findTag(range: string): Language | undefined {
  return LANGUAGES.find(({ tag }) => range === tag || range.startsWith(`${tag}-`));
}

function create(tag: string, messages: Messages): Language {
  const format = new Intl.DateTimeFormat(tag === "en" ? "en-GB" : tag, {
    dateStyle: "medium",
    timeStyle: "short",
    timeZone: "UTC",
  });
  return { tag, messages, formatTime: (iso) => `${format.format(new Date(iso))} UTC` };
}
