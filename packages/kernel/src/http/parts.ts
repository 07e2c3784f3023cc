// Parts of HTTP APIs for servers of their own: without a router and node:http, which take a fifth of a service's start.
export type { Guard } from "./api-options.ts";
export { BodyBudget, type BodyReservation } from "./body-budget.ts";
export { createDocsPage } from "./docs/page.ts";
export { createBearerGuard, readBearer } from "./guard.ts";
export {
  checkLoopback,
  checkSameOrigin,
  FORWARDING_HEADERS,
  isLoopbackHost,
  type LoopbackVerdict,
} from "./loopback.ts";
export type { Peer } from "./route.ts";
export { checkContentCoding, createValidationError } from "./request-input.ts";
export { createTokenCheck } from "./static-token.ts";
