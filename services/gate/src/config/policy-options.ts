// Options of the commands `policy`.
import { type ConfigOf, key } from "@platform/kernel/config";
import { z } from "zod";
import { filePath, text, unset, wholeNumber } from "./value.ts";

const placeOptions = {
  cluster: key(unset(text(256)), {
    description: "Cluster for which conditions on `cluster` are decided.",
    env: ["PLATFORM_CLUSTER"],
  }),
  region: key(unset(text(256)), {
    description: "Region for which conditions on `region` are decided.",
    env: ["PLATFORM_REGION"],
  }),
};

/** Options of `platform-gate policy check`. */
export const policyCheckOptions = placeOptions;

/** Options of `platform-gate policy compile`. */
export const policyCompileOptions = {
  ...placeOptions,
  output: key(filePath(), {
    description: "The module to write.",
    short: "o",
    env: [],
  }),
};

/** Options of `platform-gate policy test`. */
export const policyTestOptions = {
  ...placeOptions,
  log: key(filePath(), { description: "The recording, a JSONL file.", env: [] }),
  show: key(wholeNumber(0, 10_000).default(20), {
    description: "Denied requests to show.",
    env: [],
  }),
  format: key(z.enum(["text", "json"]).default("text"), {
    description: "Format of the report.",
    env: [],
  }),
};

/** The options as read. */
export type PolicyCompileOptions = ConfigOf<typeof policyCompileOptions>;
export type PolicyCheckOptions = ConfigOf<typeof policyCheckOptions>;
export type PolicyTestOptions = ConfigOf<typeof policyTestOptions>;
