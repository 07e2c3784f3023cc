// Identity: verification of bearer tokens, callers and their access.
export { hasAccess, requireRole, requireScope, type Caller, type Claims } from "./caller.ts";
export { createConfiguredVerifier, warnOfWeakSecret } from "./configured.ts";
export { isSignatureValid, parseJwt, type ParsedJwt } from "./jwt.ts";
export {
  createTokenVerifier,
  isWeakSecret,
  type TokenVerifier,
  type Verdict,
  type VerifierOptions,
} from "./verifier.ts";
