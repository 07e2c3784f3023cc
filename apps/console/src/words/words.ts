// Words on screen. English texts are the keys; other languages are dictionaries that are loaded when chosen.

/** Languages of the console. */
export type Language = "en" | "de";

let dictionary: Readonly<Record<string, string>> = {};
let current: Language = "en";

/** The language in use. */
export function language(): Language {
  return current;
}

/** Loads a language; call before the first render. */
export async function loadLanguage(wanted: Language): Promise<void> {
  dictionary = wanted === "de" ? (await import("./de.ts")).DE : {};
  current = wanted;
  document.documentElement.lang = wanted;
}

/** A text in the language in use; `{name}` is replaced by the value of that name. */
export function t(text: string, values?: Readonly<Record<string, string | number>>): string {
  const found = dictionary[text] ?? text;
  if (values === undefined) return found;
  return found.replace(/\{(\w+)\}/g, (whole, name: string) => String(values[name] ?? whole));
}
