// The list of anomalies of a topic.
import { z } from "zod";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Anomalies } from "../anomaly/anomalies.ts";
import { anomalyAnswer } from "../anomaly/anomaly-log.ts";
import type { Topics } from "../topic/topics.ts";
import { type Admission, tenantOf } from "./admission.ts";

/** Options of the route. */
export interface AnomalyRouteOptions {
  admission: Admission;
  topics: Topics;
  anomalies: Pick<Anomalies, "find">;
}

const NOT_SAMPLED = {
  learning: true,
  baseline: { rate: 0, rate_deviation: 0, bytes: 0, paths: 0 },
  anomalies: [],
};

/** The route that lists anomalies. */
export function createAnomalyRoute({
  admission,
  topics,
  anomalies,
}: AnomalyRouteOptions): ApiRoute {
  return defineRoute({
    method: "GET",
    path: "/api/v1/topics/{topic}/anomalies",
    summary: "Unusual rates, sizes and fields of a topic's messages",
    description:
      "Newest first, at most 100. Rates are compared with a mean of hours from samples of 10 s; fields and types are those of at " +
      "most 20 messages of each sample. Names and types only, never values. What is unusual for an hour is usual from then on.",
    tag: "Topics",
    access: admission.anyRight,
    query: z.object({
      since: z
        .string()
        .regex(/^\d{1,15}$/)
        .transform(Number)
        .optional()
        .describe("Epoch ms: only those that lasted then or began later."),
    }),
    problems: { 404: "The topic does not exist." },
    answer: z.object({
      topic: z.string(),
      learning: z
        .boolean()
        .describe("True for the first half hour, in which rates are not judged."),
      baseline: z.object({
        rate: z.number().describe("Messages per second."),
        rate_deviation: z.number(),
        bytes: z.int().describe("Mean size of a payload."),
        paths: z.int().describe("Number of fields that are known."),
      }),
      anomalies: z.array(anomalyAnswer),
    }),
    handle: ({ params, query, caller }) => {
      const name = admission.allow(caller, "any", params["topic"]!);
      const topic = topics.get(tenantOf(caller), name);
      const found = anomalies.find(topic)?.describe() ?? NOT_SAMPLED;
      const { since = 0 } = query;
      const recent = found.anomalies.filter(({ until }) => until === null || until >= since);
      return { topic: topic.name, ...found, anomalies: recent };
    },
  });
}
