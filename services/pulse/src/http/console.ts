// The web console of messaging.
import type { OperationOptions } from "@platform/chassis";

/** Describes the console. Without credentials only programs on this machine have access. */
export function describeConsole(hasCredentials: boolean): OperationOptions["console"] {
  return {
    features: [
      "topics",
      "tail",
      "schemas",
      "transforms",
      "dlq",
      "rules",
      "stats",
      "connections",
      "events",
      "query",
      "offload",
    ],
    credentials: hasCredentials ? "token" : undefined,
  };
}
