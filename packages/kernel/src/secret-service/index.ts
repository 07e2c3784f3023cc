// A client of secret services that speak the HTTP API of OpenBao and Vault: versioned key-value secrets (KV v2), and the
// renewal of its own token.
export {
  SecretService,
  SecretServiceError,
  type SecretServiceErrorCode,
  type SecretServiceOptions,
  type StoredSecret,
} from "./secret-service.ts";
