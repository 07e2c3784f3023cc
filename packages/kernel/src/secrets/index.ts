// Secrets of an installation: their values, the file that keeps generated ones, and text that is encrypted with them.
export { createSecretBox, nameKeysVariable, type SecretBox } from "./secret-box.ts";
export { loadSecretFile } from "./secret-file.ts";
export { decodeSecret, parseEncryptionKeys } from "./secret-text.ts";
