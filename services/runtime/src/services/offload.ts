// Messaging's segments in the platform's own storage: a bucket that is configured without an endpoint.
import { randomBytes } from "node:crypto";
import { formatInternalUrl, getAddress, isRunning, type EntryContext } from "./entry.ts";

const PREFIX = "PLATFORM_PULSE_S3";

/**
 * The access key that storage gets for messaging at each start. Its secret is as old as this process: services that are
 * restarted meanwhile keep it.
 */
export const OFFLOAD_KEY = {
  accessKey: "platform-messaging",
  secretKey: randomBytes(24).toString("base64url"),
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/** The bucket for segments in the platform's own storage; undefined if messaging has a store of its own, or none. */
export function findOffloadBucket(
  context: Pick<EntryContext, "running">,
  environment: Environment,
): string | undefined {
  const bucket = environment[`${PREFIX}_BUCKET`] ?? "";
  const others = ["ENDPOINT", "TOKEN", "TOKEN_FILE"].map(
    (name) => environment[`${PREFIX}_${name}`],
  );
  if (bucket === "" || others.some((value) => (value ?? "") !== "")) return undefined;
  return isRunning("vault", context) && isRunning("pulse", context) ? bucket : undefined;
}

/** Variables of messaging for that bucket. */
export function wireOffload(
  context: EntryContext,
  environment: Environment,
): Record<string, string> {
  if (findOffloadBucket(context, environment) === undefined) return {};
  return {
    [`${PREFIX}_ENDPOINT`]: formatInternalUrl(getAddress(context, "storage_addr")),
    [`${PREFIX}_TOKEN`]: `${OFFLOAD_KEY.accessKey}:${OFFLOAD_KEY.secretKey}`,
  };
}
