// Names and texts that strangers chose.

// Control characters, and those that change the direction of what follows: `invoice_\u202Efdp.exe` looks like a PDF.
const INVISIBLE = /[\p{Cc}\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/gu;

/** Shows each invisible character as a replacement character. */
export function visible(text: string): string {
  return text.replaceAll(INVISIBLE, "\ufffd");
}
