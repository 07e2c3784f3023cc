// Identity: verification of bearer tokens, callers and their access.
export {
  createScopeError,
  declareScopes,
  EVERY_SCOPE,
  findSessionEnd,
  hasScope,
  includesScope,
  needScope,
  requireScope,
  type Caller,
  type Claims,
  type ScopeCheck,
} from "./caller.ts";
export { createConfiguredVerifier, warnOfWeakSecret, type TokenConfig } from "./configured.ts";
export {
  followRevocations,
  readFeed,
  type FollowedRevocations,
  type RevocationConfig,
} from "./configured-revocations.ts";
export { createBoundedFetch } from "./issuer-request.ts";
export { isSignatureValid, parseJwt, type ParsedJwt } from "./jwt.ts";
export { RevocationFollower } from "./revocation-follower.ts";
export { RevocationSet, toRevocable, type RevocableToken, type Revocation } from "./revocations.ts";
export { TokenStreams } from "./token-streams.ts";
export {
  createTokenVerifier,
  isWeakSecret,
  type TokenProfile,
  type TokenVerifier,
  type Verdict,
  type VerifierOptions,
} from "./verifier.ts";
