// Fields of a route that decide who may use it.
import { type GuardFields, guardFields } from "@platform/kernel/route-rules";
import { type RouteAuthConfig, routeAuthSchema } from "./route-auth.ts";
import { unset } from "./value.ts";

/** Fields of {@link RouteGuardFields} with their schemas. */
export const routeGuardFields = {
  auth: unset(routeAuthSchema).meta({
    description: "access control of the route instead of the global token and JWT settings",
  }),
  ...guardFields,
};

/** Validated {@link routeGuardFields}. */
export interface RouteGuardFields extends GuardFields {
  readonly auth?: RouteAuthConfig;
}
