// Signature Version 4: the canonical form of requests, keys, and signatures as a client makes them.
export {
  buildCanonicalRequest,
  buildStringToSign,
  type CanonicalParts,
  canonicalizeQuery,
  decodeUri,
  encodeUri,
  hashHex,
  parseQuery,
  type QueryPair,
} from "./canonical-request.ts";
export { type ChunkSeed, signChunk, signTrailer } from "./chunk-signature.ts";
export {
  createUrlSigner,
  encodeAwsChunked,
  presignTarget,
  type SignedHead,
  type SigningIdentity,
  signPolicy,
  signRequest,
} from "./sign.ts";
export {
  deriveSigningKey,
  formatScope,
  isSameSignature,
  SigningKey,
  SigningKeyCache,
  type SigningScope,
} from "./signing-key.ts";
export { formatBasicTime, parseBasicTime } from "./timestamp.ts";
