// Signature Version 2: the default of boto3's presigned URLs, and of older clients.
export { readOlderClaim } from "./claim.ts";
export type { OlderClaim } from "./claim.ts";
export { buildOlderStrings, signOlder } from "./string-to-sign.ts";
