// Endpoints that are not implemented yet.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiMethod, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import type { Admission } from "./admission.ts";

const UNBUILT: readonly (readonly [ApiMethod, string, string])[] = [
  ["POST", "/api/v1/cdc", "Change data capture"],
];

/** The routes, which all return 501. */
export function createUnbuiltRoutes({ managers }: Pick<Admission, "managers">): ApiRoute[] {
  return UNBUILT.map(([method, path, what]) =>
    defineRoute({
      method,
      path,
      summary: `${what}: not available yet`,
      tag: "Not available yet",
      access: managers,
      // It never succeeds.
      status: 501,
      answer: NO_BODY,
      problems: { 501: "Not available yet" },
      handle: () => {
        throw new PlatformError("not_available_yet", `${what} is not available yet.`);
      },
    }),
  );
}
