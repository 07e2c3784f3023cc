// Fills a store with a million small objects in this process; the benchmark measures the store afterwards.
import { openStore } from "../../services/vault/src/open-store.ts";

/** Folders, and keys in each. */
export const FOLDERS = 1_000;
const KEYS_PER_FOLDER = 1_000;
const AUTHORS = 1_000;
const LANES = 500;

/** `folder-0042/key-0007` */
export function nameKey(folder: number, key: number): string {
  return `folder-${String(folder).padStart(4, "0")}/key-${String(key).padStart(4, "0")}`;
}

/** Puts all objects into the bucket `bench`, each with an author of a thousand in its metadata. Resolves to objects per second. */
export async function fillMillion(dataDir: string): Promise<number> {
  const store = await openStore({ dataDir });
  const owner = { id: "bench", displayName: "bench" };
  await store.buckets.create({ bucket: "bench", owner, region: "us-east-1" });
  const body = Buffer.from("sixteen bytes...");
  let next = 0;
  const lane = async () => {
    while (next < FOLDERS * KEYS_PER_FOLDER) {
      const number = next++;
      const key = nameKey(Math.floor(number / KEYS_PER_FOLDER), number % KEYS_PER_FOLDER);
      const upload = store.objects.beginPut({
        bucket: "bench",
        key,
        contentLength: body.length,
        owner,
        metadata: { author: `author-${number % AUTHORS}` },
      });
      await upload.write(body);
      await upload.commit();
    }
  };
  const begun = performance.now();
  await Promise.all(Array.from({ length: LANES }, lane));
  const seconds = (performance.now() - begun) / 1000;
  await store.close();
  return (FOLDERS * KEYS_PER_FOLDER) / seconds;
}

/**
 * Puts objects with vectors into the bucket `vectors`, whose distance is the cosine. Resolves to its time in seconds, and
 * rejects after `msMax`.
 */
export async function fillVectors(
  dataDir: string,
  count: number,
  dimension: number,
  makeVector: (number: number) => Float32Array,
  msMax: number,
): Promise<number> {
  const store = await openStore({ dataDir });
  const bucket = "vectors";
  const owner = { id: "bench", displayName: "bench" };
  await store.buckets.create({ bucket, owner, region: "us-east-1" });
  await store.buckets.setSetting(bucket, "vectorIndex", { dimension, metric: "cosine" });
  const begun = performance.now();
  let next = 0;
  const lane = async (): Promise<void> => {
    while (next < count) {
      const number = next++;
      if (performance.now() - begun > msMax)
        throw new Error(`only ${number} of ${count} vectors were stored in ${msMax / 60_000} min`);
      const vector = new Uint8Array(makeVector(number).buffer);
      const key = String(number);
      const attributes = { bucket, key, contentLength: 0, owner, vector };
      await store.objects.beginPut(attributes).commit();
    }
  };
  try {
    await Promise.all(Array.from({ length: LANES }, lane));
  } finally {
    await store.close();
  }
  return (performance.now() - begun) / 1_000;
}
