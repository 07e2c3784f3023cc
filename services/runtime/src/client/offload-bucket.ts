// The bucket of messaging's segments in the platform's own storage, and the key that reaches nothing else.
import { createUrlSigner } from "@platform/s3/signature";
import { formatInternalUrl, getAddress, type EntryContext } from "../services/entry.ts";
import { OFFLOAD_KEY } from "../services/offload.ts";
import { ACCESS_KEY, SECRET_KEY } from "../services/vault.ts";
import { ApiClient, ApiError } from "./api-client.ts";
import { createBucket, createBucketPolicy } from "./bucket.ts";

const USER = "platform-messaging";

/** Creates the bucket if it is missing, and the key anew. Storage must be ready. */
export async function prepareOffloadBucket(context: EntryContext, bucket: string): Promise<void> {
  const storage = new ApiClient({
    label: "storage",
    url: formatInternalUrl(getAddress(context, "storage_admin_addr")),
    authorize: createUrlSigner({
      accessKey: context.credentials[ACCESS_KEY] ?? "",
      secret: context.credentials[SECRET_KEY] ?? "",
      region: "us-east-1",
    }),
  });
  await createBucket(storage, bucket);
  const policies = { offload: createBucketPolicy(bucket) };
  await storage.call("PUT", `/api/v1/users/${USER}`, { policies });
  const { accessKey, secretKey } = OFFLOAD_KEY;
  await storage.call("DELETE", `/api/v1/keys/${accessKey}`).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  });
  await storage.call("POST", "/api/v1/keys", {
    user: USER,
    access_key: accessKey,
    secret_key: secretKey,
    description: "Segments of messaging",
  });
}
