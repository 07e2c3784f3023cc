// Signature Version 4: verification and creation of signatures.
export { decodeUri, encodeUri, hashHex, parseQuery } from "../wire/uri.ts";
export { readQuery } from "../wire/query.ts";
export type { QueryPair } from "../wire/uri.ts";
export { signChunk, signTrailer } from "./chunk-signature.ts";
export type { ChunkSeed, PayloadMode } from "./payload.ts";
export { checkPostPolicy, parsePostPolicy, readFormClaim } from "./post-policy.ts";
export type { PostPolicy } from "./post-policy.ts";
export { encodeAwsChunked, presignTarget, signPolicy, signRequest } from "./sign.ts";
export { isSameSignature } from "./signing-key.ts";
export { SignatureVerifier } from "./verify.ts";
export type { FindKey, SignatureKind, SignedRequest } from "./verify.ts";
