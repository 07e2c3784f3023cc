// Configuration keys of WebAssembly middleware.
import { key } from "@platform/kernel/config";
import { GUEST_LIMITS_DEFAULT } from "../shared-state/index.ts";
import { bound } from "./bound.ts";
import { serviceUrl, unset } from "./value.ts";

/** Keys of the configuration. */
export const middlewareKeys = {
  middleware_memory: bound(
    "Maximum memory of all instances of WebAssembly middleware per worker; requests wait, or get 503, when it is in use.",
    {
      default: GUEST_LIMITS_DEFAULT.memoryBytes,
      min: 1_048_576,
      max: 8_589_934_592,
      unit: "bytes",
    },
  ),
  middleware_fuel: bound(
    "Instructions that a call of WebAssembly middleware may execute; then it is ended, and the request gets 502. Starting an instance may take 20 times as many.",
    { default: GUEST_LIMITS_DEFAULT.fuelPerCall, min: 1_000, max: 1_000_000_000 },
  ),
  registry: key(unset(serviceUrl()), {
    description: "Registry from which `platform-gate install` gets middleware.",
    env: ["PLATFORM_REGISTRY"],
    flag: false,
  }),
};
