// The languages of the pages, and which one a browser gets.
import { DE } from "./de.ts";
import { EN, type Messages } from "./en.ts";

/** A language with all sentences of the pages. */
export interface Language {
  /** BCP 47 tag, for `lang`. */
  readonly tag: string;
  readonly messages: Messages;
  /** A time for people, in UTC: where they are is not known. */
  readonly formatTime: (iso: string) => string;
}

const HEADER_CHARS_MAX = 256;
const TAGS_MAX = 16;
const LANGUAGES: readonly Language[] = [create("en", EN), create("de", DE)];

/** BCP 47 tags of the languages there are. */
export const LANGUAGE_TAGS: readonly string[] = LANGUAGES.map(({ tag }) => tag);

/** The first of our languages among space-separated tags, as `ui_locales` has them; undefined where it names none. */
export function findLanguage(tags: string): Language | undefined {
  for (const tag of tags.slice(0, HEADER_CHARS_MAX).toLowerCase().split(" ").slice(0, TAGS_MAX)) {
    const found = findTag(tag);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The one of our languages that `Accept-Language` (RFC 9110 section 12.5.4) prefers; English where it names none. */
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
