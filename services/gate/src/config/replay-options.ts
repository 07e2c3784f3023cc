// Options of the command `replay`.
import { type ConfigOf, key } from "@platform/kernel/config";
import { z } from "zod";
import { DAY_MS, filePath, originUrl, unset, wholeNumber } from "./value.ts";

/** Options of `platform-gate replay`. */
export const replayOptions = {
  shadow: key(z.boolean().default(false), {
    description: "Send the requests to --target and compare its responses with the recorded ones.",
    env: [],
  }),
  log: key(unset(filePath()), { description: "The recording, a JSONL file.", env: [] }),
  target: key(unset(originUrl()), { description: "Origin of the candidate.", env: [] }),
  middleware: key(unset(filePath()), {
    description: "WebAssembly middleware to pass the recording by, without any request.",
    env: [],
  }),
  config: key(z.string().default(""), {
    description: "Settings that the middleware reads, as `middleware_config` of a route.",
    env: [],
  }),
  expect_same: key(z.boolean().default(false), {
    description: "With --middleware: exit code 1 if it changes or answers anything.",
    env: [],
  }),
  concurrency: key(wholeNumber(1, 256).default(1), {
    description: "Requests at a time; 1 keeps their order.",
    env: [],
  }),
  timeout_ms: key(wholeNumber(1, DAY_MS).default(30_000), {
    description: "Timeout of a response.",
    unit: "ms",
    env: [],
  }),
  methods: key(z.array(z.string()).default([]), {
    description: "Only requests with these methods, such as GET,HEAD.",
    defaultText: "all",
    env: [],
  }),
  limit: key(unset(wholeNumber(1, Number.MAX_SAFE_INTEGER)), {
    description: "Maximum number of requests.",
    env: [],
  }),
  headers: key(z.array(z.string()).default([]), {
    description:
      'Fields to send in place of the recorded ones, such as "Authorization: Bearer …"; redacted ones are not sent.',
    secret: true,
    flag: "headers",
    env: ["PLATFORM_GATE_REPLAY_HEADERS"],
  }),
  host_header: key(z.enum(["client", "target"]).default("client"), {
    description: "Host of the requests: as recorded, or that of --target.",
    env: [],
  }),
  ignore_headers: key(z.array(z.string()).default([]), {
    description:
      "Response fields that are not compared, beside Date, Age and those of the connection.",
    env: [],
  }),
  ignore_members: key(z.array(z.string()).default([]), {
    description: "Members of JSON bodies that are not compared, such as items[].updated_at.",
    env: [],
  }),
  redact: key(z.array(z.string()).default([]), {
    description: "Names that the route's `record.redact` contains.",
    env: [],
  }),
  show: key(wholeNumber(0, 10_000).default(20), {
    description: "Differing responses to show.",
    env: [],
  }),
  format: key(z.enum(["text", "json"]).default("text"), {
    description: "Format of the report.",
    env: [],
  }),
};

/** The options as given. */
export type ReplayCommandOptions = ConfigOf<typeof replayOptions>;
