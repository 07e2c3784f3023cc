// Options of the command `dashboard`.
import { type ConfigOf, key } from "@platform/kernel/config";
import { z } from "zod";
import { originUrl, unset, wholeNumber } from "./value.ts";

/** Options of `platform-gate dashboard`. */
export const dashboardOptions = {
  url: key(originUrl().default("http://127.0.0.1:8080"), {
    description: "Origin of the gateway.",
    env: ["PLATFORM_GATE_URL"],
  }),
  token: key(z.string().min(1).optional(), {
    description: "The operator token, or a token with the scope gate:read.",
    secret: true,
    env: ["PLATFORM_GATE_AUTH_TOKEN"],
  }),
  updates: key(unset(wholeNumber(1, Number.MAX_SAFE_INTEGER)), {
    description: "End after this number of updates, one a second.",
    env: [],
  }),
};

/** The options as read. */
export type DashboardOptions = ConfigOf<typeof dashboardOptions>;
