// Options of the commands `install` and `registry index`.
import { type ConfigOf, key } from "@platform/kernel/config";
import { z } from "zod";
import { CONFIG_PATH_DEFAULT, CONFIG_PATH_VARIABLE } from "./state-folder.ts";
import { originUrl, serviceUrl, text, unset } from "./value.ts";

/** Options of `platform-gate install`. */
export const installOptions = {
  registry: key(unset(serviceUrl()), {
    description: "Registry of the middleware; there is no default.",
    env: ["PLATFORM_REGISTRY"],
  }),
  url: key(originUrl().default("http://127.0.0.1:8080"), {
    description: "Origin of the running gateway.",
    env: ["PLATFORM_GATE_URL"],
  }),
  token: key(z.string().min(1).optional(), {
    description: "The operator token, or a token with the scope gate:admin.",
    secret: true,
    env: ["PLATFORM_GATE_AUTH_TOKEN"],
  }),
  offline: key(z.boolean().default(false), {
    description:
      "Write the module to data_dir instead, while no gateway uses it: the gateway has it from its next start.",
    env: [],
  }),
  config: key(text().default(CONFIG_PATH_DEFAULT), {
    description: "Configuration file whose data_dir is meant, with --offline.",
    env: [CONFIG_PATH_VARIABLE],
  }),
  dry_run: key(z.boolean().default(false), {
    description: "Get and check the module, and register nothing.",
    env: [],
  }),
};

/** The options as read. */
export type InstallOptions = ConfigOf<typeof installOptions>;
