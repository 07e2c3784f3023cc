// Signature Version 2: what boto3 presigns with unless it is told otherwise, and what older clients send.
export { readOlderClaim } from "./claim.ts";
export type { OlderClaim } from "./claim.ts";
export { buildOlderStrings, signOlder } from "./string-to-sign.ts";
