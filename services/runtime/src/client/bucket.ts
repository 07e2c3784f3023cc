// Buckets of storage.
import { ApiError, type ApiClient } from "./api-client.ts";

/** Creates a bucket; false if it exists. */
export async function createBucket(storage: ApiClient, name: string): Promise<boolean> {
  try {
    await storage.call("POST", "/api/v1/buckets", { name });
    return true;
  } catch (error) {
    if (error instanceof ApiError && error.status === 409) return false;
    throw error;
  }
}
