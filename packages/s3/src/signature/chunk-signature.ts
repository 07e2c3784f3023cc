// Signatures of the chunks and trailers of a streamed body ("Signature calculations: transferring payload in chunks").
import { hashHex } from "./canonical-request.ts";
import { formatScope, type SigningKey, type SigningScope } from "./signing-key.ts";

/** The start of a chain of chunk signatures. */
export interface ChunkSeed {
  key: SigningKey;
  timestamp: string;
  scope: SigningScope;
  /** The signature of the request headers. */
  signature: string;
}

const EMPTY_SHA256 = hashHex("");

/** The signature of a chunk with the SHA-256 `hash`; `seed.signature` is the previous signature. */
export function signChunk(seed: ChunkSeed, hash: string): string {
  const { timestamp, scope, signature } = seed;
  return seed.key.sign(
    `AWS4-HMAC-SHA256-PAYLOAD\n${timestamp}\n${formatScope(scope)}\n${signature}\n${EMPTY_SHA256}\n${hash}`,
  );
}

/** The signature of the trailers, `name:value\n` for each, hashed; `seed.signature` is that of the last chunk. */
export function signTrailer(seed: ChunkSeed, hash: string): string {
  const { timestamp, scope, signature } = seed;
  return seed.key.sign(
    `AWS4-HMAC-SHA256-TRAILER\n${timestamp}\n${formatScope(scope)}\n${signature}\n${hash}`,
  );
}
