// The command line of `platform`, declared.
import { z } from "zod";
import { addressKey, createServiceKeys, defineConfig, key } from "@platform/kernel/config";
import type { ConfigKey } from "@platform/kernel/config";
import { SERVICES } from "./services/index.ts";

/** The platform's version. */
export const VERSION = "1.0.0";

/** Commands of the specification that are not built yet; they answer with a clear error. */
export const UNBUILT_COMMANDS = ["init", "run", "check", "build", "deploy"] as const;

const { log_level, drain_timeout_ms } = createServiceKeys("runtime");

const listenerKeys: Record<
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

/** Keys of `platform up`, the listeners' addresses among them. */
const upOptions = {
  only: key(z.array(z.string()).max(64).default([]), {
    description: `Start these services alone, and what they need: ${SERVICES.map(({ name }) => name).join(", ")}.`,
    env: [],
  }),
  data: key(z.string().min(1).default("./data"), {
    description: "Folder for everything that the services keep.",
    env: ["PLATFORM_DATA_DIR"],
  }),
  json: key(z.boolean().default(false), {
    description: "JSON lines for programs instead of the screen and the readable log.",
    env: [],
  }),
  log_level,
  drain_timeout_ms,
};

/** The program. */
export const configDefinition = defineConfig({
  service: "runtime",
  program: "platform",
  version: VERSION,
  summary: "One self-hosted backend platform.",
  keys: {},
  runs: false,
  commands: {
    up: {
      summary: "Start every service on this machine, supervised, behind the gateway.",
      standalone: true,
      options: { ...upOptions, ...listenerKeys },
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
