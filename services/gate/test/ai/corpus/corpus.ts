// The corpus of the prompt guard: attacks and harmless prompts, split once by the hash of each text.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { ATTACK_FAMILIES, HELD_OUT_FAMILIES } from "./attacks.ts";
import { HARMLESS } from "./harmless.ts";

/** A prompt of the corpus. */
export interface Sample {
  readonly text: string;
  /** Family of an attack; `everyday` or `lookalikes` of a harmless prompt. */
  readonly family: string;
  /** `rules`: used to write the rules. `held-out`: used to measure them. `family`: of a family that is held out whole. */
  readonly part: "rules" | "held-out" | "family";
}

/** All attacks. */
export const ATTACKS: readonly Sample[] = ATTACK_FAMILIES.flatMap(({ name, texts }) =>
  listUnique(texts).map((text) => ({
    text,
    family: name,
    part: HELD_OUT_FAMILIES.has(name) ? ("family" as const) : choosePart(text),
  })),
);

/** All harmless prompts. */
export const HARMLESS_SAMPLES: readonly Sample[] = Object.entries(HARMLESS).flatMap(
  ([family, texts]) => listUnique(texts).map((text) => ({ text, family, part: choosePart(text) })),
);

function choosePart(text: string): "rules" | "held-out" {
  return createHash("sha256").update(text).digest()[0]! % 2 === 0 ? "rules" : "held-out";
}

function listUnique(texts: readonly string[]): string[] {
  return [...new Set(texts)];
}

/** A prompt that was written one by one, by somebody who had not seen the rules. */
export interface Wording {
  readonly text: string;
  readonly family: string;
  readonly isAttack: boolean;
}

/**
 * Wordings from which rules were written and the model was trained, those that were kept from both, or passages of documents
 * and sources of this project, which are harmless.
 */
export function readWordings(part: "rules" | "held-out" | "documents"): Wording[] {
  const text = readFileSync(join(import.meta.dirname, `wordings-${part}.jsonl`), "utf8");
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Wording);
}
