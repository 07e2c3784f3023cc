// Presigned URLs (Signature Version 4, "Authenticating Requests: Using Query Parameters"), so that wrk needs no keys.
import { createHash, createHmac } from "node:crypto";

/** A pair of keys. */
export interface Credentials {
  accessKey: string;
  secretKey: string;
}

/** The keys that contenders are started with. */
export const CREDENTIALS: Credentials = {
  accessKey: "BENCHACCESSKEY",
  secretKey: "bench-secret-key-0123456789",
};

const REGION = "us-east-1";
const EXPIRES_SECONDS = 86_400;

/** Signs for one host and one moment; the key of the day is derived once. */
export function createPresigner(
  host: string,
  credentials: Credentials,
): (method: string, path: string, query?: Record<string, string>) => string {
  const time = new Date().toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
  const day = time.slice(0, 8);
  const scope = `${day}/${REGION}/s3/aws4_request`;
  let key: Buffer = Buffer.from(`AWS4${credentials.secretKey}`);
  for (const part of scope.split("/")) key = createHmac("sha256", key).update(part).digest();
  return (method, path, query = {}) => {
    const parameters: Record<string, string> = {
      ...query,
      "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
      "X-Amz-Credential": `${credentials.accessKey}/${scope}`,
      "X-Amz-Date": time,
      "X-Amz-Expires": String(EXPIRES_SECONDS),
      "X-Amz-SignedHeaders": "host",
    };
    const canonicalQuery = Object.keys(parameters)
      .sort()
      .map((name) => `${encode(name)}=${encode(parameters[name]!)}`)
      .join("&");
    const canonical = `${method}\n${path}\n${canonicalQuery}\nhost:${host}\n\nhost\nUNSIGNED-PAYLOAD`;
    const digest = createHash("sha256").update(canonical).digest("hex");
    const signature = createHmac("sha256", key)
      .update(`AWS4-HMAC-SHA256\n${time}\n${scope}\n${digest}`)
      .digest("hex");
    return `${path}?${canonicalQuery}&X-Amz-Signature=${signature}`;
  };
}

// Signature Version 4 encodes these characters as well.
function encode(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
