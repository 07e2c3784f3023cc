// Gateway rules for the platform that applies them, which does not load the rest of the package.
export { formatProof, PROOF_FIELD } from "./http/proof.ts";
export { listDeclared, type ServiceRules } from "./service/gateway-rules.ts";
