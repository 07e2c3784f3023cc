// `platform bucket add`: creates a bucket.
import { allowOrigins, readOrigin } from "../client/bucket-cors.ts";
import { createBucket } from "../client/bucket.ts";
import { connectStorage } from "../client/connect.ts";
import { findTarget } from "../client/target.ts";

/** Options of {@link runBucketAdd}. */
export interface BucketAddOptions {
  data: string;
  name: string;
  /** Origins of pages that may use the bucket. */
  origins: readonly string[];
}

/** Creates the bucket and prints its address. */
export async function runBucketAdd({ data, name, ...options }: BucketAddOptions): Promise<void> {
  const origins = options.origins.map(readOrigin);
  const target = await findTarget(data);
  if (!(await createBucket(connectStorage(target), name)))
    throw new Error(`there is already a bucket ${JSON.stringify(name)}`);
  if (origins.length > 0) await allowOrigins(target, name, origins);
  const url = target.state.services.find((service) => service.name === "vault")?.url ?? "";
  process.stderr.write(`bucket ${name} added\n`);
  process.stdout.write(`${url}/${name}\n`);
}
