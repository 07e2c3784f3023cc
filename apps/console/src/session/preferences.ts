// Theme, density, language and keyboard shortcuts, the only data that the page stores in the browser.
import { effect, signal } from "@preact/signals";
import type { Language } from "../words/words.ts";

const STORAGE_KEY = "platform.console";

interface Preferences {
  theme?: "light" | "dark";
  density?: "comfortable" | "dense";
  language?: Language;
  shortcuts?: boolean;
}

/** The preferences; setting them stores and applies them. */
export const preferences = signal<Preferences>(load());

function load(): Preferences {
  try {
    return JSON.parse(localStorage.getItem(STORAGE_KEY) ?? "{}") as Preferences;
  } catch {
    return {};
  }
}

/** The chosen language, or that of the browser. */
export function chooseLanguage(): Language {
  return preferences.value.language ?? (navigator.language.startsWith("de") ? "de" : "en");
}

/** Applies changes of the preferences and of the system's theme to the document. */
export function startPreferences(): void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const apply = (): void => {
    const { theme, density } = preferences.value;
    const root = document.documentElement;
    root.dataset["theme"] = theme ?? (system.matches ? "dark" : "light");
    root.dataset["density"] = density ?? "dense";
  };
  system.addEventListener("change", apply);
  effect(() => {
    apply();
    try {
      localStorage.setItem(STORAGE_KEY, JSON.stringify(preferences.value));
    } catch {
      // Without storage the preferences last as long as the page.
    }
  });
}

/** Changes one or more preferences. */
export function setPreferences(changes: Preferences): void {
  preferences.value = { ...preferences.value, ...changes };
}

/** True if the user asks the system for less motion. */
export function hasReducedMotion(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
