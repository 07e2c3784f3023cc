// Suggestions for the dead letters of a topic.
import { z } from "zod";
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import type { Topics } from "../topic/topics.ts";
import { suggestionAnswer, Triage, type TriageOptions } from "../triage/triage.ts";
import { type Admission, tenantOf } from "./admission.ts";

/** Options of the route. */
export interface TriageRouteOptions extends TriageOptions {
  readonly admission: Admission;
  readonly topics: Topics;
}

/** The route that tries dead letters. */
export function createTriageRoute(options: TriageRouteOptions): ApiRoute {
  const { admission, topics } = options;
  const triage = new Triage(options);
  return defineRoute({
    method: "GET",
    path: "/api/v1/topics/{topic}/dlq/triage",
    summary: "Suggest what to do about the dead letters of a topic",
    description:
      "For each cause, most frequent first. The newest letters (200 and 8 MiB of a cause, 2 s in all) are tried against the schema " +
      "and the transform of today, with the change that is suggested; `confidence` is what passed. Changes nothing.",
    tag: "Dead letters",
    access: admission.subscribers,
    problems: { 404: "The topic does not exist.", 429: "Another triage of the tenant is running." },
    answer: z.object({
      dlq_topic: z.string(),
      total: z.int(),
      is_complete: z.boolean(),
      suggestions: z.array(suggestionAnswer),
    }),
    handle: ({ params, caller }) => {
      const name = admission.allow(caller, "subscribe", params["topic"]!);
      return triage.suggest(topics.get(tenantOf(caller), name));
    },
  });
}
