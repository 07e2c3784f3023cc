// Outcomes of changes of routes, as the API shows them.
import { z } from "zod";
import { routeAnswer } from "../config/route.ts";

/** Numbers of changed routes, as members of answers. */
export const changedRoutes = { added: z.int(), updated: z.int(), removed: z.int() };

/** Outcome of a change that was only checked, for the API. */
export const routeCheck = z.object({
  change: z.enum(["added", "updated", "unchanged"]),
  before: routeAnswer.nullable().describe("The route as it is now; null if it does not exist"),
  after: routeAnswer.nullable().describe("The route as it would be"),
  before_etag: z.string().nullable().describe("Tag of `before`"),
  fields: z.array(z.string()).describe("Names of the fields that differ"),
  warnings: z.array(z.string()).readonly(),
});

/** Outcome of a change that was only checked. */
export type RouteCheck = z.infer<typeof routeCheck>;
