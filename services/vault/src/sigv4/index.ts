// Signature Version 4: checking and making signatures.
export { canonicalizePath, decodeUri, encodeUri, hashHex, parseQuery } from "./canonical.ts";
export type { FieldPair, QueryPair } from "./canonical.ts";
export { signChunk, signTrailer } from "./chunk-signature.ts";
export type { ChunkSeed, PayloadMode } from "./payload.ts";
export { checkPostPolicy, parsePostPolicy, readFormClaim } from "./post-policy.ts";
export type { FormClaim, PostPolicy } from "./post-policy.ts";
export { encodeAwsChunked, presignTarget, signPolicy, signRequest } from "./sign.ts";
export type { SignedHead, SigningIdentity, UnsignedRequest } from "./sign.ts";
export { isSameSignature } from "./signing-key.ts";
export { SignatureVerifier } from "./verify.ts";
export type { Authentication, FindKey, SignedRequest } from "./verify.ts";
