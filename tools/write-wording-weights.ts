// `node tools/write-wording-weights.ts`: trains the prompt guard's model of wordings with the corpus, without what is held out.
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { deflateRawSync } from "node:zlib";
import { normalizeText } from "../services/gate/src/ai/guard/normalize-text.ts";
import { FEATURES, listFeatures } from "../services/gate/src/ai/guard/wording-features.ts";
import { listParts } from "../services/gate/src/ai/guard/wording-model.ts";
import { ATTACKS, HARMLESS_SAMPLES, readWordings } from "../services/gate/test/ai/corpus/corpus.ts";

const MODULE = new URL("../services/gate/src/ai/guard/wording-weights.ts", import.meta.url);
const EPOCHS = 25;
const RATE = 0.5;
const DECAY = 2e-5;
/** Prompts that were composed from parts teach less than those that were written one by one. */
const COMPOSED_WEIGHT = 0.4;
const WEIGHT_MAX = 127;
/** Taken from the log odds: of what people send, a far smaller share are attacks than of the corpus. */
const PRIOR = 1;

/** A prompt to learn from. */
export interface Lesson {
  /** Features of each part of the text. */
  readonly parts: readonly (readonly number[])[];
  readonly isAttack: boolean;
  readonly weight: number;
}

/** Weights of features, and what is added to their sum. */
export interface Weights {
  readonly features: Float64Array;
  readonly bias: number;
}

/** Prompts of the corpus that are not held out. */
export function listLessons(): Lesson[] {
  const composed = [
    ...ATTACKS.map((sample) => ({ ...sample, isAttack: true })),
    ...HARMLESS_SAMPLES.map((sample) => ({ ...sample, isAttack: false })),
  ].filter(({ part }) => part === "rules");
  return [
    ...[...readWordings("rules"), ...readWordings("documents")].map(({ text, isAttack }) =>
      toLesson(text, isAttack, 1),
    ),
    ...composed.map(({ text, isAttack }) => toLesson(text, isAttack, COMPOSED_WEIGHT)),
  ];
}

/** A text as the model sees it. */
export function toLesson(text: string, isAttack: boolean, weight: number): Lesson {
  return { parts: listParts(normalizeText(text)).map(listFeatures), isAttack, weight };
}

/** Logistic regression by stochastic gradients (AdaGrad), in an order that is the same each time. */
export function train(lessons: readonly Lesson[]): Weights {
  const order = [...lessons];
  const features = new Float64Array(FEATURES);
  const squares = new Float64Array(FEATURES).fill(1e-6);
  let bias = 0;
  let biasSquare = 1e-6;
  const choose = createRandom();
  for (let epoch = 0; epoch < EPOCHS; epoch++) {
    shuffle(order, choose);
    for (const { parts, isAttack, weight } of order) {
      const { part, sum } = findHighest(parts, features);
      const slope = (1 / (1 + Math.exp(-(bias + sum))) - Number(isAttack)) * weight;
      for (const feature of part) {
        const gradient = slope / Math.sqrt(part.length) + DECAY * features[feature]!;
        squares[feature]! += gradient * gradient;
        features[feature]! -= (RATE * gradient) / Math.sqrt(squares[feature]!);
      }
      biasSquare += slope * slope;
      bias -= (RATE * slope) / Math.sqrt(biasSquare);
    }
  }
  return { features, bias };
}

// The part of a text that counts.
function findHighest(
  parts: Lesson["parts"],
  features: Float64Array,
): { part: readonly number[]; sum: number } {
  let found = { part: [] as readonly number[], sum: -Infinity };
  for (const part of parts) {
    let sum = 0;
    for (const feature of part) sum += features[feature]!;
    sum /= Math.sqrt(Math.max(1, part.length));
    if (sum > found.sum) found = { part, sum };
  }
  return found;
}

function createRandom(): (below: number) => number {
  let state = 7;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function shuffle(items: unknown[], choose: (below: number) => number): void {
  for (let at = items.length - 1; at > 0; at--) {
    const other = choose(at + 1);
    [items[at], items[other]] = [items[other], items[at]];
  }
}

/** Changes with everything that the weights depend on, except for the code of the training. */
export function hashLessons(lessons: readonly Lesson[]): string {
  const hash = createHash("sha256");
  for (const lesson of lessons) hash.update(`${JSON.stringify(lesson)}\n`);
  return hash.digest("hex").slice(0, 32);
}

/** The hash of the lessons from which the module's weights were made. */
export function readModuleHash(): string | undefined {
  return /lessons: ([0-9a-f]{32})/.exec(readFileSync(MODULE, "utf8"))?.[1];
}

function composeModule(lessons: readonly Lesson[]): string {
  const { features, bias } = train(lessons);
  const highest = features.reduce((most, weight) => Math.max(most, Math.abs(weight)), 0);
  const scale = highest / WEIGHT_MAX;
  const bytes = Int8Array.from(features, (weight) => Math.round(weight / scale));
  const base64 = deflateRawSync(bytes, { level: 9 }).toString("base64");
  const lines = base64.match(/.{1,120}/g) ?? [];
  return `// Weights of the model of wordings, by \`node tools/write-wording-weights.ts\`; lessons: ${hashLessons(lessons)}.

/** Added to the weights of a text. */
export const BIAS = ${(bias - PRIOR).toFixed(4)};
/** Of a weight of 1. */
export const SCALE = ${scale.toPrecision(5)};
/** A signed byte for each feature, in deflate and base64. */
export const WEIGHTS = \`
${lines.join("\n")}
\`;
`;
}

if (import.meta.main) {
  const lessons = listLessons();
  writeFileSync(MODULE, composeModule(lessons));
  process.stdout.write(`learned from ${lessons.length} prompts\n`);
}
