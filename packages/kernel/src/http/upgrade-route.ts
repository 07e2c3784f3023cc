// WebSockets in the documentation of an API. The upgrade itself is handled by the listener (`onUpgrade`).
import type { z } from "zod";
import { PlatformError } from "../errors/index.ts";
import { NO_BODY } from "./answer.ts";
import { defineRoute, type ApiRoute } from "./route.ts";

/** A path that accepts only WebSocket connections. */
export interface UpgradeRouteOptions {
  path: string;
  summary: string;
  description: string;
  tag?: string;
  access?: NonNullable<ApiRoute["access"]>;
  requires?: NonNullable<ApiRoute["requires"]>;
  params?: z.ZodType;
  query?: z.ZodType;
  /** Problems before the upgrade, in addition to 426. */
  problems?: Readonly<Record<number, string>>;
}

/** Creates the operation that documents a WebSocket and answers plain requests with 426. */
export function defineUpgradeRoute({ problems = {}, ...options }: UpgradeRouteOptions): ApiRoute {
  return defineRoute({
    ...options,
    method: "GET",
    status: 101,
    answer: NO_BODY,
    problems: { ...problems, 426: "The request is not a WebSocket upgrade" },
    handle: () => {
      throw new PlatformError("upgrade_required", "This path accepts only WebSocket connections.", {
        headers: { Upgrade: "websocket", Connection: "Upgrade" },
      });
    },
  });
}
