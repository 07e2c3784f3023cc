// Secrets of an installation: their values, the file that keeps generated ones, text that is encrypted with them, and their
// replacement while a program runs.
export {
  ACCEPTED_VARIABLE,
  followShared,
  isSecretStates,
  LiveSecrets,
  readSecretStates,
  replaceInEnvironment,
  toLiveSecret,
  type LiveSecret,
  type Secret,
  type SecretState,
  type SharedSecrets,
} from "./live-secret.ts";
export { createSecretBox, nameKeysVariable, type SecretBox } from "./secret-box.ts";
export { loadSecretFile } from "./secret-file.ts";
export { decodeSecret, parseEncryptionKeys } from "./secret-text.ts";
