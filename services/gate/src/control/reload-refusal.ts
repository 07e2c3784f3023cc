// The answer to a reload of an invalid configuration.
import { ConfigError } from "@platform/kernel/config";
import { PlatformError } from "@platform/kernel/errors";

/** Returns the error that a failed reload is reported with. */
export function explainReload(cause: unknown): PlatformError {
  if (cause instanceof PlatformError) return cause;
  if (cause instanceof ConfigError) {
    return new PlatformError("validation_failed", cause.message, { cause });
  }
  return new PlatformError(
    "validation_failed",
    cause instanceof Error ? cause.message : "the configuration cannot be read",
    { cause },
  );
}
