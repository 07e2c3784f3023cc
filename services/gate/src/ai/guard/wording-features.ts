// Features of a text for the model of wordings: words and pairs of words, and the order of cues, each as a number.
import { encodeSentences } from "./cues.ts";

/** Features are hashed to numbers of so many bits. */
const FEATURE_BITS = 16;
/** Different features. */
export const FEATURES = 2 ** FEATURE_BITS;

/** Letters of a word that count: endings differ by grammar. */
const STEM_LETTERS = 7;
/** Cues that belong together stand within so many others. */
const CUE_DISTANCE = 5;
const OTHER = "_";
const FNV_OFFSET = 0x811c9dc5;
const FNV_PRIME = 0x01000193;
/** Odd, so that no bit is lost. */
const MIX = 0x9e3779b1;
/** Kinds of features, which must not be taken for each other. */
const Kind = { Word: 1, Pair: 2, Skip: 3, Cue: 4, CuePair: 5, CueTriple: 6, Codes: 7 } as const;
/** Letters of scripts without spaces between words are words. */
const WORDS = /[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[\p{L}\p{N}@]+/gu;

/** Marks features of the text that is read, so that each counts once. */
const seen = new Uint8Array(FEATURES);

/** The features of a normalized text, each once, in no order. */
export function listFeatures(normalized: string): number[] {
  const features: number[] = [];
  const add = (hash: number): void => {
    const feature = hash >>> (32 - FEATURE_BITS);
    if (seen[feature] === 1) return;
    seen[feature] = 1;
    features.push(feature);
  };
  addWords(normalized.match(WORDS) ?? [], add);
  for (const sentence of encodeSentences(normalized)) addCues(sentence, add);
  for (const feature of features) seen[feature] = 0;
  return features;
}

function addWords(words: readonly string[], add: (hash: number) => void): void {
  let last = 0;
  let before = 0;
  for (const word of words) {
    let hash = FNV_OFFSET;
    const end = Math.min(word.length, STEM_LETTERS);
    for (let at = 0; at < end; at++) hash = Math.imul(hash ^ word.charCodeAt(at), FNV_PRIME);
    add(mix(hash, Kind.Word));
    if (last !== 0) add(mix(mix(last, Kind.Pair), hash));
    if (before !== 0) add(mix(mix(before, Kind.Skip), hash));
    before = last;
    last = hash;
  }
}

// Single cues, two and three of them in this order, and three words that follow one another.
function addCues(sentence: string, add: (hash: number) => void): void {
  const cues: number[] = [];
  for (const code of sentence) if (code !== OTHER) cues.push(code.charCodeAt(0));
  for (const [at, cue] of cues.entries()) {
    add(mix(cue, Kind.Cue));
    const end = Math.min(cues.length, at + CUE_DISTANCE + 1);
    for (let second = at + 1; second < end; second++) {
      const pair = mix(cue, cues[second]!);
      add(mix(pair, Kind.CuePair));
      for (let third = second + 1; third < end; third++)
        add(mix(mix(pair, cues[third]!), Kind.CueTriple));
    }
  }
  for (let at = 0; at + 3 <= sentence.length; at++) {
    const codes = mix(
      mix(sentence.charCodeAt(at), sentence.charCodeAt(at + 1)),
      sentence.charCodeAt(at + 2),
    );
    add(mix(codes, Kind.Codes));
  }
}

function mix(one: number, other: number): number {
  let hash = Math.imul(one ^ (other + 0x7f4a7c15), MIX);
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x85ebca6b) ^ (hash >>> 13);
}
