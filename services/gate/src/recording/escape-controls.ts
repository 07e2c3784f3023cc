// Texts of recordings and responses as a terminal may show them: they must not control it.

/** Writes controls, and characters that nobody sees, as escapes. */
export function escapeControls(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) =>
    character === "\n" ? "\\n" : `\\u${character.codePointAt(0)!.toString(16).padStart(4, "0")}`,
  );
}
