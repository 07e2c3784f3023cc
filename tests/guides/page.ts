// The code blocks of a page of the guide, as a reader copies them.
import { readFileSync } from "node:fs";

/** A fenced block. */
export interface CodeBlock {
  language: string;
  text: string;
}

/** Reads the fenced blocks of a page in `docs/guide`, in order. */
export function readBlocks(name: string): CodeBlock[] {
  const page = readFileSync(new URL(`../../docs/guide/${name}`, import.meta.url), "utf8");
  return [...page.matchAll(/^```(\w+)\n(.*?)^```$/gms)].map(([, language = "", text = ""]) => ({
    language,
    text,
  }));
}
