// Keys of the specification that are not available yet.
import { key } from "@platform/kernel/config";
import { z } from "zod";
import { later, text } from "./value.ts";

/** Keys that are refused by name rather than ignored. */
export const unbuiltKeys = {
  config_store_bucket: unbuilt(
    text(),
    "Bucket that holds the configuration.",
    "PLATFORM_CONFIG_STORE_BUCKET",
  ),
  discovery: unbuilt(text(), "Service discovery.", "PLATFORM_DISCOVERY"),
  secret_url: unbuilt(text(), "Secret service for certificates.", "PLATFORM_SECRET_URL"),
  secret_api_key: unbuilt(text(), "Key for the secret service.", "PLATFORM_SECRET_API_KEY"),
  secret_tenant_id: unbuilt(
    text(),
    "Tenant of the secrets. Its default, `default`, is accepted.",
    "PLATFORM_SECRET_TENANT_ID",
    "default",
  ),
  gitops: unbuilt(z.record(z.string(), z.unknown()), "Webhook that pulls the configuration."),
};

/** `harmless` is a value that changes nothing. */
function unbuilt<T extends z.ZodType>(
  schema: T,
  description: string,
  env?: string,
  harmless?: string,
) {
  const refused = later(schema);
  const known = z.preprocess((value) => (value === harmless ? undefined : value), refused);
  return key(known, {
    secret: env === "PLATFORM_SECRET_API_KEY",
    description: `${description} Not available yet.`,
    env: env === undefined ? [] : [env],
    flag: false,
  });
}
