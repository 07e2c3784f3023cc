// Settings of a service from its environment.
import { z } from "zod";
import {
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
  loadConfig,
  type ConfigOf,
} from "@platform/kernel/config";

const KEYS = {
  ...createServiceKeys("service"),
  ...createTokenKeys("service", "for routes with `requires`"),
  name: key(
    z
      .string()
      .regex(/^[a-z][a-z0-9-]{0,62}$/)
      .optional(),
    {
      description: "Name in logs, metrics and traces; default: the name of package.json.",
      env: ["PLATFORM_SERVICE_NAME"],
    },
  ),
  port: key(z.int().min(0).max(65_535).optional(), {
    description: "Port; replaces the declared one.",
    env: ["PLATFORM_SERVICE_PORT", "PORT"],
  }),
  host: key(z.string().min(1).optional(), {
    description: "Address to listen on; replaces the declared one.",
    env: ["PLATFORM_SERVICE_HOST", "HOST"],
  }),
  data: key(z.string().min(1).default("./data"), {
    description: "Folder of the SQLite files.",
    env: ["PLATFORM_DATA_DIR"],
  }),
  database_url: key(
    z
      .string()
      .regex(/^(?:postgres(?:ql)?:\/\/|sqlite:).+/)
      .optional(),
    {
      description: "Database of all `database()` declarations, instead of SQLite files.",
      env: ["DATABASE_URL"],
      secret: true,
      allowed: "a URL like postgres://user:password@host/name",
    },
  ),
} as const;

/** Settings of a service. */
export type Settings = ConfigOf<typeof KEYS>;

/** Declaration of the settings, for the reference. */
export const serviceDefinition = defineConfig({
  service: "service",
  program: "a service",
  version: "1.0.0",
  summary: "Environment variables of services built with @platform/service.",
  keys: KEYS,
});

/** Reads the settings. Throws a ConfigError that lists all invalid variables. */
export function readSettings(env: Readonly<Record<string, string | undefined>>): Settings {
  const loaded = loadConfig(serviceDefinition, { argv: [], env });
  if (loaded.kind !== "run") throw new Error("settings have no commands");
  return loaded.config;
}
