// The lexical embedding: words and their 3- to 5-grams, hashed to 256 numbers. Texts with the same words, also in other forms,
// are alike; it knows nothing of meaning.
import { type Embedder, encodeVector, RefusedTextError } from "../model/vector.ts";

/** Numbers of an embedding. */
export const LEXICAL_DIMENSION = 256;

const GRAM_MIN = 3;
const GRAM_MAX = 5;
const WORD_WEIGHT = 2;
const GRAM_WEIGHT = 0.5;
const CHARACTERS_MAX = 65_536;
const SEPARATOR = /[^\p{L}\p{N}]+/u;

/** Embeds a text. The result has length 1; it is zero if the text has no words. */
export function embedLexically(text: string): Float32Array {
  const vector = new Float32Array(LEXICAL_DIMENSION);
  const words = text.slice(0, CHARACTERS_MAX).normalize("NFKC").toLowerCase().split(SEPARATOR);
  const counts = new Map<string, number>();
  for (const word of words) if (word !== "") counts.set(word, (counts.get(word) ?? 0) + 1);
  for (const [word, count] of counts) {
    // A word that is repeated often does not outweigh all others.
    const weight = 1 + Math.log(count);
    add(vector, word, WORD_WEIGHT * weight);
    const marked = `<${word}>`;
    for (let size = GRAM_MIN; size <= GRAM_MAX; size += 1) {
      for (let at = 0; at + size <= marked.length; at += 1) {
        add(vector, marked.slice(at, at + size), GRAM_WEIGHT * weight);
      }
    }
  }
  let square = 0;
  for (const value of vector) square += value * value;
  const length = Math.sqrt(square);
  if (length > 0) for (let at = 0; at < vector.length; at += 1) vector[at]! /= length;
  return vector;
}

/** The cosine of two embeddings. */
export function compareLexically(a: Float32Array, b: Float32Array): number {
  let product = 0;
  for (let at = 0; at < a.length; at += 1) product += a[at]! * b[at]!;
  return product;
}

// FNV-1a; one bit is the sign, so that collisions cancel out on average.
function add(vector: Float32Array, text: string, weight: number): void {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at += 1) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  }
  hash ^= hash >>> 15;
  const index = (hash >>> 1) % LEXICAL_DIMENSION;
  vector[index]! += (hash & 1) === 0 ? weight : -weight;
}

/** Computes lexical embeddings. */
export class LexicalEmbedder implements Embedder {
  async embed(text: string, dimension: number): Promise<Uint8Array> {
    if (dimension !== LEXICAL_DIMENSION) {
      throw new RefusedTextError(`the lexical embedding has ${LEXICAL_DIMENSION} dimensions`);
    }
    const vector = embedLexically(text);
    if (vector.every((value) => value === 0)) throw new RefusedTextError("the text has no words");
    return Promise.resolve(encodeVector([...vector]));
  }
}
