// A model of the wordings of attacks: it weighs everything that a text says, where rules know what attacks must say.
import { inflateRawSync } from "node:zlib";
import { FEATURES, listFeatures } from "./wording-features.ts";
import { BIAS, SCALE, WEIGHTS } from "./wording-weights.ts";

/** Longer texts are judged in parts of this length, which overlap by half: an attack may be a small part of a document. */
const PART_CHARACTERS = 1_024;

let weights: Int8Array | undefined;

/** Reads the weights, so that no prompt waits for that. */
export function readWeights(): Int8Array {
  if (weights !== undefined) return weights;
  const bytes = inflateRawSync(Buffer.from(WEIGHTS, "base64"), { maxOutputLength: FEATURES });
  return (weights = new Int8Array(bytes.buffer, bytes.byteOffset, FEATURES));
}

/** Probability from 0 to 1 that a normalized text is an attack: that of its most suspicious part. */
export function judgeWording(normalized: string): number {
  let highest = 0;
  for (const part of listParts(normalized)) highest = Math.max(highest, judgePart(part));
  return highest;
}

/** The parts of a normalized text that are judged by themselves. */
export function listParts(normalized: string): string[] {
  if (normalized.length <= PART_CHARACTERS) return [normalized];
  const parts: string[] = [];
  const step = PART_CHARACTERS / 2;
  for (let at = 0; at + step < normalized.length; at += step)
    parts.push(normalized.slice(at, at + PART_CHARACTERS));
  return parts;
}

function judgePart(part: string): number {
  const known = readWeights();
  const features = listFeatures(part);
  if (features.length === 0) return 0;
  let sum = 0;
  for (const feature of features) sum += known[feature]!;
  return 1 / (1 + Math.exp(-(BIAS + (SCALE * sum) / Math.sqrt(features.length))));
}
