// AWS Signature Version 4 of requests to storage
// (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html).
import { createHash, createHmac } from "node:crypto";
import type { Authorize } from "./api-client.ts";

const REGION = "us-east-1";
const SERVICE = "s3";
const SIGNED_FIELDS = "host;x-amz-content-sha256;x-amz-date";

/** Signs requests whose paths and queries consist of unreserved characters. */
export function createSigner(accessKey: string, secretKey: string): Authorize {
  return (method, url, body) => {
    const date = new Date().toISOString().replaceAll(/[-:]|\.\d{3}/g, "");
    const hash = createHash("sha256").update(body).digest("hex");
    const fields = `host:${url.host}\nx-amz-content-sha256:${hash}\nx-amz-date:${date}\n`;
    const query = [...url.searchParams].map(([name, value]) => `${name}=${value}`).toSorted();
    const request = [method, url.pathname, query.join("&"), fields, SIGNED_FIELDS, hash].join("\n");
    const day = date.slice(0, 8);
    const scope = `${day}/${REGION}/${SERVICE}/aws4_request`;
    const digest = createHash("sha256").update(request).digest("hex");
    const key = [day, REGION, SERVICE, "aws4_request"].reduce<Buffer>(
      (secret, part) => createHmac("sha256", secret).update(part).digest(),
      Buffer.from(`AWS4${secretKey}`),
    );
    const signature = createHmac("sha256", key)
      .update(`AWS4-HMAC-SHA256\n${date}\n${scope}\n${digest}`)
      .digest("hex");
    return {
      "x-amz-content-sha256": hash,
      "x-amz-date": date,
      authorization: `AWS4-HMAC-SHA256 Credential=${accessKey}/${scope}, SignedHeaders=${SIGNED_FIELDS}, Signature=${signature}`,
    };
  };
}
