// A trial of a remote: everything that the store will do there, with an object of its own.
import { randomBytes } from "node:crypto";
import { S3ClientError, type S3Client } from "@platform/s3";
import { RecordDigest } from "./record-digest.ts";
import type { Remote } from "./remote.ts";

/** A step of a trial, and its result for people. */
export interface RemoteCheckStep {
  readonly step:
    | "bucket"
    | "put"
    | "ranged_get"
    | "checksum"
    | "delete"
    | "versioning"
    | "object_lock"
    | "lifecycle";
  readonly outcome: "ok" | "warning" | "failed" | "skipped";
  readonly detail: string;
}

const TRIAL_BYTES = 70_000;

/** Tries a bucket of a remote. Never rejects: the report says what does not work. */
export async function checkRemote(
  remote: Remote,
  bucket: string,
  storeId: string,
): Promise<RemoteCheckStep[]> {
  const steps: RemoteCheckStep[] = [];
  const options = { attemptsMax: 1 };
  const attempt = async (step: RemoteCheckStep["step"], work: () => Promise<string>) => {
    try {
      const detail = await work();
      const outcome = detail.startsWith("warning: ") ? "warning" : "ok";
      steps.push({ step, outcome, detail: detail.replace(/^warning: /, "") });
      return true;
    } catch (error) {
      steps.push({ step, outcome: "failed", detail: explain(error) });
      return false;
    }
  };
  const bytes = randomBytes(TRIAL_BYTES);
  const key = `${remote.settings.prefix}${storeId}/check-${randomBytes(8).toString("hex")}`;
  let client!: S3Client;
  const isThere = await attempt("bucket", async () => {
    client = remote.client(bucket);
    await client.list(`${remote.settings.prefix}${storeId}/`, { ...options, keysMax: 1 });
    return "it exists and can be listed";
  });
  if (!isThere) return steps;
  const digest = new RecordDigest();
  digest.add(bytes);
  const checksum = { algorithm: "CRC32C", value: digest.crc32c } as const;
  const isPut = await attempt("put", async () => {
    await client.put(key, bytes, { ...options, isNew: true, checksum });
    return "an object was written";
  });
  if (!isPut) return steps;
  await attempt("ranged_get", async () => {
    const found = await client.getRange(key, 1_000, 66_000, options);
    if (found.equals(bytes.subarray(1_000, 66_000))) return "a range was read";
    throw new Error("the range has other bytes");
  });
  await attempt("checksum", async () => {
    const head = await client.head(key, { ...options, withChecksums: true });
    const own = head?.checksums.find(({ algorithm }) => algorithm === "CRC32C");
    if (own === undefined)
      return "warning: it returns no checksum of whole objects: each moved object is read back";
    if (own.value !== digest.crc32c) throw new Error("its checksum is wrong");
    return "its checksum is that of the object";
  });
  await attempt("delete", async () => {
    await client.delete(key, options);
    if ((await client.head(key, options)) !== undefined)
      throw new Error("the object is still there after its deletion");
    return "the object was deleted";
  });
  for (const [step, name] of SETTINGS) await readSetting(client, step, name, steps);
  return steps;
}

const SETTINGS = [
  ["versioning", "versioning"],
  ["object_lock", "object-lock"],
  ["lifecycle", "lifecycle"],
] as const;

/** Settings of a bucket there that would keep deleted bytes, or delete bytes that are in use. */
const FINDINGS: Readonly<Record<(typeof SETTINGS)[number][0], readonly [RegExp, string]>> = {
  versioning: [
    /<Status>(?:Enabled|Suspended)</,
    "it has versions: deleted objects keep their bytes there until a lifecycle rule removes noncurrent versions",
  ],
  object_lock: [
    /<ObjectLockEnabled>Enabled</,
    "it has object lock: deletions are refused until retention ends, and repeated until then",
  ],
  lifecycle: [
    /<Expiration>|<Days>|<Date>/,
    "it has lifecycle rules: one that expires objects destroys data of this store",
  ],
};

async function readSetting(
  client: S3Client,
  step: (typeof SETTINGS)[number][0],
  name: string,
  steps: RemoteCheckStep[],
): Promise<void> {
  const [pattern, text] = FINDINGS[step];
  try {
    const document = await client.readBucketDocument(name, { attemptsMax: 1 });
    const isFound = pattern.test(document);
    const detail = isFound ? text : "not set";
    steps.push({ step, outcome: isFound ? "warning" : "ok", detail });
  } catch (error) {
    const isUnset = error instanceof S3ClientError && error.code === "not_found";
    const detail = isUnset ? "not set" : explain(error);
    steps.push({ step, outcome: isUnset ? "ok" : "skipped", detail });
  }
}

function explain(error: unknown): string {
  if (error instanceof S3ClientError && error.code === "clock_skew")
    return "the clocks of this store and the remote differ by more than it accepts";
  return error instanceof Error ? error.message : String(error);
}
