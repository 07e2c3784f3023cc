// POST /api/v1/admin/canary/{id}/{hold,resume,promote,rollback}: an operator takes over a canary.
import { PlatformError } from "@platform/kernel/errors";
import { type ApiRoute, defineRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { CanaryAction } from "../resilience/canary-engine.ts";
import { makeRouteId } from "../control/route-id.ts";
import { readChangeRequest } from "./request.ts";
import type { RoutesApiOptions } from "./routes-api.ts";

const SUMMARIES: Readonly<Record<CanaryAction, string>> = {
  hold: "Keep the weight of a canary; it is still rolled back if it fails",
  resume: "Continue the promotion of a canary from its weight",
  promote: "Send all traffic to a canary",
  rollback: "Send all traffic to the stable target",
};

export function createCanaryRoutes({ controller, canaries }: RoutesApiOptions): ApiRoute[] {
  return Object.entries(SUMMARIES).map(([action, summary]) =>
    defineRoute({
      method: "POST",
      path: `/api/v1/admin/canary/{id}/${action}`,
      tag: "Routes",
      summary,
      description: "The ID is in `status.canary` of the route in `GET /api/v1/routes`.",
      params: z.object({ id: z.string() }),
      answer: z.object({ phase: z.string(), weight: z.number() }),
      problems: { 404: "No route with a canary has this ID" },
      handle: (exchange) => {
        const { id } = exchange.params;
        const { caller } = readChangeRequest(exchange);
        const key = [...controller.state.routes.keys()].find((each) => makeRouteId(each) === id);
        const state =
          key === undefined ? undefined : canaries.steer(key, action as CanaryAction, caller);
        if (state === undefined) {
          throw new PlatformError("not_found", `no route with a canary has the ID ${id}`);
        }
        return state;
      },
    }),
  );
}
