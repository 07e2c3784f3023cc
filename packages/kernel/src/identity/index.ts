// Identity: verification of bearer tokens, callers and their access.
export {
  hasAccess,
  requireAccess,
  requireRole,
  requireScope,
  type Caller,
  type Claims,
  type Requirement,
} from "./caller.ts";
export {
  createConfiguredVerifier,
  warnOfWeakSecret,
  type ConfiguredVerifierOptions,
  type TokenConfig,
} from "./configured.ts";
export { type JwksOptions } from "./jwks.ts";
export {
  createTokenVerifier,
  isWeakSecret,
  type RefusalCode,
  type TokenVerifier,
  type Verdict,
  type VerifierOptions,
} from "./verifier.ts";
