// GET /api/v1/admin/route-series: requests, failures and response times of a route by target, over time.
import { PlatformError } from "@platform/kernel/errors";
import { SERIES_STEPS } from "@platform/kernel/feeds";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { RoutePlanner } from "../control/planner.ts";
import type { RouteSeries } from "../telemetry/route-series.ts";
import { makeRouteKey } from "../shared-state/index.ts";

const values = z.array(z.number().nullable());

const query = z.object({
  prefix: z.string().min(1).max(1_024),
  host: z.string().max(255).default(""),
  methods: z.string().max(2_048).default("").describe("Methods of the route, such as `GET,POST`."),
  variant: z.string().max(2_200).default(""),
  from: z.coerce.number().int().min(0).describe("Time of the first point, epoch ms."),
  step: z
    .enum(SERIES_STEPS.map(String))
    .optional()
    .describe("Seconds between two points; default: the smallest that reaches back to `from`."),
});

export function createRouteSeriesRoutes(
  planner: Pick<RoutePlanner, "listSpecs">,
  series: RouteSeries,
): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/admin/route-series",
      tag: "Operation",
      summary: "Attempts, failures and response times of a route by target, over time",
      description:
        "Every attempt counts for its target, also one that is retried at another; one that fails got no response, a 5xx, or one of `outlier_statuses`. Times are those from the start of an attempt, with the wait for a connection, to the response head; attempts without a response have none. Points of a second are kept for five minutes, of ten seconds for three hours, of five minutes for a day. `targets` is empty for a route with more than 64, and for routes beyond 1 000 targets in all.",
      query,
      answer: z.object({
        step: z.number().meta({ description: "seconds between two points" }),
        from: z.number().meta({ description: "time of the first point, epoch ms" }),
        targets: z.array(
          z.object({
            url: z.string(),
            requests: values.meta({ description: "attempts per second; null without a sample" }),
            failures: values,
            p99_ms: values.meta({ description: "99th percentile; null without a response" }),
          }),
        ),
        p50_ms: values.meta({ description: "of all targets" }),
        p99_ms: values,
        canary: values.optional().meta({ description: "share of the canary in percent" }),
      }),
      problems: { 404: "There is no such route" },
      handle: ({ query: { prefix, host, methods, variant, from, step } }) => {
        const listed = methods === "" ? undefined : methods.toUpperCase().split(",").sort();
        const [ofHost, named] = [host, variant].map((text) => (text === "" ? undefined : text));
        const key = makeRouteKey(ofHost, prefix, listed, named);
        if (!planner.listSpecs().some((spec) => spec.key === key)) {
          throw new PlatformError("not_found", "There is no such route.");
        }
        return series.read(key, from, step === undefined ? undefined : Number(step));
      },
    }),
  ];
}
