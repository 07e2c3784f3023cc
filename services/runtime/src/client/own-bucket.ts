// Buckets of the platform's own storage for its services, and the keys that reach nothing else.
import { createUrlSigner } from "@platform/s3/signature";
import { CONFIG_READER, type ConfigPlace } from "../services/config-bucket.ts";
import { formatInternalUrl, getAddress, type EntryContext } from "../services/entry.ts";
import { OFFLOAD_KEY } from "../services/offload.ts";
import { ACCESS_KEY, SECRET_KEY } from "../services/vault.ts";
import { ApiClient, ApiError } from "./api-client.ts";
import { createBucket, createBucketPolicy, createReaderPolicy } from "./bucket.ts";

const REGION = "us-east-1";
/** Changes nothing: it stands for a configuration that comes later. */
const EMPTY_CONFIG = Buffer.from("{}\n");

/** Prepares the bucket of messaging's segments, and its key anew. Storage must be ready. */
export async function prepareOffloadBucket(context: EntryContext, bucket: string): Promise<void> {
  await prepareBucket(context, bucket, {
    user: "platform-messaging",
    key: OFFLOAD_KEY,
    policies: { offload: createBucketPolicy(bucket) },
    description: "Segments of messaging",
  });
}

/** Prepares the bucket of the gateway's configuration with an empty one, and a key that only reads it. */
export async function prepareConfigBucket(
  context: EntryContext,
  { bucket, key }: ConfigPlace,
): Promise<void> {
  await prepareBucket(context, bucket, {
    user: "platform-gateway",
    key: CONFIG_READER,
    policies: { configuration: createReaderPolicy(bucket, key) },
    description: "Configuration of the gateway",
  });
  const { S3Client } = await import("@platform/s3");
  const root = new S3Client({
    endpoint: new URL(formatInternalUrl(getAddress(context, "storage_addr"))),
    region: REGION,
    bucket,
    credentials: () => readRoot(context),
  });
  try {
    if ((await root.head(key)) === undefined) await root.put(key, EMPTY_CONFIG);
  } finally {
    root.close();
  }
}

interface Reader {
  user: string;
  key: { accessKey: string; secretKey: string };
  policies: Record<string, object>;
  description: string;
}

async function prepareBucket(
  context: EntryContext,
  bucket: string,
  { user, key, policies, description }: Reader,
): Promise<void> {
  const { accessKey, secretKey } = readRoot(context);
  const storage = new ApiClient({
    label: "storage",
    url: formatInternalUrl(getAddress(context, "storage_admin_addr")),
    authorize: createUrlSigner({ accessKey, secret: secretKey, region: REGION }),
  });
  await createBucket(storage, bucket);
  await storage.call("PUT", `/api/v1/users/${user}`, { policies });
  await storage.call("DELETE", `/api/v1/keys/${key.accessKey}`).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.status !== 404) throw error;
  });
  await storage.call("POST", "/api/v1/keys", {
    user,
    access_key: key.accessKey,
    secret_key: key.secretKey,
    description,
  });
}

function readRoot({ credentials }: EntryContext): { accessKey: string; secretKey: string } {
  return { accessKey: credentials[ACCESS_KEY] ?? "", secretKey: credentials[SECRET_KEY] ?? "" };
}
