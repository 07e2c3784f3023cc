// Settings of the runtime's API: tokens, telemetry.
import { z } from "zod";
import { HIDDEN_DEFAULT } from "../data/hidden-columns.ts";
import {
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
  loadConfig,
  type ConfigOf,
} from "@platform/kernel/config";

const { otlp_endpoint, metrics_token } = createServiceKeys("runtime");
const KEYS = {
  otlp_endpoint,
  metrics_token,
  ...createTokenKeys("runtime", "for the API of `platform up`"),
  console_data: key(z.enum(["off", "read", "edit"]).optional(), {
    description:
      "Use of the data pages of projects: `edit` allows people with the right to change rows after they unlock the page.",
    defaultText: "edit; read with --domain",
  }),
  console_data_hidden: key(z.string().max(4_096).default(HIDDEN_DEFAULT), {
    description:
      "Parts of names of columns whose values are not shown on tables' pages, separated by commas; `none` shows all. Statements show all columns.",
  }),
  console_data_audit_values: key(z.stringbool().default(false), {
    description:
      "The audit log of data pages has the values of changes, except those of hidden columns.",
  }),
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
