// Flags and environment variables of `platform`.
import { z } from "zod";
import {
  addressKey,
  createServiceKeys,
  defineConfig,
  key,
  readPackageVersion,
  type ConfigKey,
} from "@platform/kernel/config";
import { SERVICES } from "./services/index.ts";

/** Version of the platform. */
export const VERSION = readPackageVersion(import.meta.url);

/** Commands that are specified but not implemented; they fail with an error message. */
export const UNBUILT_COMMANDS = ["init", "run", "check", "build", "deploy"] as const;

const { log_level, drain_timeout_ms } = createServiceKeys("runtime");

const LISTENER_KEYS: Record<
  string,
  ConfigKey<ReturnType<typeof addressKey>["schema"]>
> = Object.fromEntries(
  SERVICES.flatMap((entry) =>
    entry.listeners.map((listener) => [
      listener.key,
      addressKey(listener.default, { description: listener.description, env: [listener.env] }),
    ]),
  ),
);

/** Flags of `platform up` besides the listening addresses. */
const UP_KEYS = {
  only: key(z.array(z.string()).max(64).default([]), {
    description: `Start only these services: ${SERVICES.map(({ label }) => label).join(", ")}.`,
    env: [],
  }),
  data: key(z.string().min(1).default("./data"), {
    description: "Data directory of all services.",
    env: ["PLATFORM_DATA_DIR"],
  }),
  domain: key(
    z
      .string()
      .regex(/^(?=.{1,240}$)[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})+$/)
      .optional(),
    {
      description:
        "Public domain. The gateway routes identity at identity.DOMAIN and storage at vault.DOMAIN; identity's public URL is https://identity.DOMAIN. Without it, these names are below localhost.",
      env: ["PLATFORM_DOMAIN"],
      allowed: "a lower-case domain name, like example.com",
    },
  ),
  json: key(z.boolean().default(false), {
    description: "Write the banner and the log as JSON lines.",
    env: [],
  }),
  log_level,
  drain_timeout_ms,
};

/** Command line of `platform`. */
export const runtimeDefinition = defineConfig({
  service: "runtime",
  program: "platform",
  version: VERSION,
  summary: "One self-hosted backend platform.",
  keys: {},
  runs: false,
  commands: {
    up: {
      summary: "Start and supervise all services on this machine.",
      standalone: true,
      options: { ...UP_KEYS, ...LISTENER_KEYS },
    },
    init: unbuilt("Create a project.", "name"),
    run: unbuilt("Run a service file.", "file"),
    check: unbuilt("Check a service file.", "file"),
    build: unbuilt("Build one self-contained executable.", "file"),
    deploy: unbuilt("Write or apply deployment files.", "file?"),
  },
});

function unbuilt(summary: string, argument: string) {
  return {
    summary: `${summary} Not available yet.`,
    standalone: true,
    arguments: [argument],
  } as const;
}
