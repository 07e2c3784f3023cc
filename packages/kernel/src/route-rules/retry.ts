// The schema of a route's `retry`.
import { z } from "zod";
import { wholeNumber } from "./value.ts";

const RETRIES_MAX = 10;
const STATUSES_MAX = 64;

/** A list of statuses of failed requests. */
export const statuses = () => z.array(wholeNumber(400, 599)).max(STATUSES_MAX);

/** Retries instead of the defaults. */
export const retrySchema = z.strictObject({
  attempts: wholeNumber(0, RETRIES_MAX)
    .default(2)
    .meta({ description: "maximum retries; 0: none" }),
  statuses: statuses().default([]).meta({
    description: "statuses of the upstream that are retried, for idempotent methods",
  }),
  on_timeout: z.boolean().default(false).meta({
    description: "also retry after response_timeout_ms",
  }),
});
