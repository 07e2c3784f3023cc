// The gateway's configuration in the platform's own storage: a bucket that is configured without an endpoint.
import { randomBytes } from "node:crypto";
import { formatInternalUrl, getAddress, isRunning, type EntryContext } from "./entry.ts";

const PREFIXES = ["PLATFORM_GATE_CONFIG_STORE", "PLATFORM_CONFIG_STORE"];
const OBJECT_DEFAULT = "config.json";

/** The access key that storage gets for the gateway at each start; services that are restarted meanwhile keep it. */
export const CONFIG_READER = {
  accessKey: "platform-gateway",
  secretKey: randomBytes(24).toString("base64url"),
} as const;

type Environment = Readonly<Record<string, string | undefined>>;

/** An object of a bucket. */
export interface ConfigPlace {
  bucket: string;
  key: string;
}

/** The configuration in the platform's own storage; undefined if there is none, or a store of its own. */
export function findConfigPlace(
  context: Pick<EntryContext, "running">,
  environment: Environment,
): ConfigPlace | undefined {
  const read = (end: string): string =>
    PREFIXES.map((prefix) => environment[`${prefix}_${end}`] ?? "").find((one) => one !== "") ?? "";
  const place = read("BUCKET").replace(/^s3:\/\//, "");
  const isElsewhere = ["ENDPOINT", "ACCESS_KEY", "ACCESS_KEY_ID"].some((end) => read(end) !== "");
  if (place === "" || isElsewhere) return undefined;
  if (!isRunning("vault", context) || !isRunning("gate", context)) return undefined;
  const [bucket = "", ...rest] = place.split("/");
  return { bucket, key: rest.length === 0 ? OBJECT_DEFAULT : rest.join("/") };
}

/** Variables of the gateway for it. */
export function wireConfigStore(
  context: EntryContext,
  environment: Environment,
): Record<string, string> {
  if (findConfigPlace(context, environment) === undefined) return {};
  return {
    PLATFORM_GATE_CONFIG_STORE_ENDPOINT: formatInternalUrl(getAddress(context, "storage_addr")),
    PLATFORM_GATE_CONFIG_STORE_ACCESS_KEY: CONFIG_READER.accessKey,
    PLATFORM_GATE_CONFIG_STORE_SECRET_KEY: CONFIG_READER.secretKey,
  };
}
