// Signatures of webhook calls by the Standard Webhooks specification, version 1.
import { createHmac } from "node:crypto";

/** Beginning of secrets; the rest is base64. */
export const SECRET_PREFIX = "whsec_";

/** A call to sign. */
export interface SignedCall {
  id: string;
  timestampSeconds: number;
  body: string;
}

/** Returns the header fields of a call, with one signature per secret: receivers accept any of them. */
export function signWebhook(
  { id, timestampSeconds, body }: SignedCall,
  secrets: readonly string[],
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(SECRET_PREFIX.length), "base64");
    const hmac = createHmac("sha256", key).update(`${id}.${timestampSeconds}.${body}`);
    return `v1,${hmac.digest("base64")}`;
  });
  return {
    "webhook-id": id,
    "webhook-timestamp": String(timestampSeconds),
    "webhook-signature": signatures.join(" "),
  };
}
