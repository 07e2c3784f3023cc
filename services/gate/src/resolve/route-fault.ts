// Errors of routes whose settings are valid by themselves but not usable.
import { PlatformError } from "@platform/kernel/errors";

/** An error that names the route, the key and its value. */
export function refuseField(
  label: string,
  key: string,
  value: string | undefined,
  fault: string,
): PlatformError {
  const given = value === undefined ? "" : ` ${JSON.stringify(value)}`;
  return new PlatformError("validation_failed", `route ${label}: ${key}${given} ${fault}`);
}

/** The message of a caught value. */
export function describeCause(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
