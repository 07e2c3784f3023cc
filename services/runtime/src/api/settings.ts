// Settings of the runtime's API: tokens, telemetry.
import {
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  loadConfig,
  type ConfigOf,
} from "@platform/kernel/config";

const { otlp_endpoint, metrics_token } = createServiceKeys("runtime");
const KEYS = {
  otlp_endpoint,
  metrics_token,
  ...createTokenKeys("runtime", "for the API of `platform up`"),
};

/** Settings of the API. */
export type RuntimeSettings = ConfigOf<typeof KEYS>;

/** Reads the settings. Throws a ConfigError that lists all invalid variables. */
export function readRuntimeSettings(
  env: Readonly<Record<string, string | undefined>>,
): RuntimeSettings {
  const definition = defineConfig({
    service: "runtime",
    program: "platform up",
    version: "",
    summary: "",
    keys: KEYS,
  });
  const loaded = loadConfig(definition, { argv: [], env });
  if (loaded.kind !== "run") throw new Error("settings have no commands");
  return loaded.config;
}
