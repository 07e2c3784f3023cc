// Signature Version 4: verification.
export { decodeUri, encodeUri, hashHex, parseQuery } from "../wire/uri.ts";
export { readQuery } from "../wire/query.ts";
export type { QueryPair } from "../wire/uri.ts";
export type { PayloadMode } from "./payload.ts";
export { checkPostPolicy, parsePostPolicy, readFormClaim } from "./post-policy.ts";
export type { PostPolicy } from "./post-policy.ts";
export { SignatureVerifier } from "./verify.ts";
export type { FindKey, SignatureKind, SignedRequest } from "./verify.ts";
