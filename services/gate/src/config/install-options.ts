// Options of the commands `install` and `registry index`.
import { type ConfigOf, key } from "@platform/kernel/config";
import { z } from "zod";
import { originUrl, serviceUrl, unset } from "./value.ts";

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
  dry_run: key(z.boolean().default(false), {
    description: "Get and check the module, and register nothing.",
    env: [],
  }),
};

/** The options as read. */
export type InstallOptions = ConfigOf<typeof installOptions>;
