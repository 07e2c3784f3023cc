// The HTTP API of a service: operations, guard, listener, and common parts of operations.
export { createApi, type Api } from "./api.ts";
export type { ApiOptions, Guard } from "./api-options.ts";
export { BodyBudget, type BodyReservation } from "./body-budget.ts";
export { findOutflow } from "./connections.ts";
export { createEtag, isNotModified, requireIfMatch } from "./etag.ts";
export { createDocsPage } from "./docs/page.ts";
export { createBearerGuard } from "./guard.ts";
export { listenHttp, type HttpListener, type ListenAddress, type ListenOptions } from "./listen.ts";
export { checkLoopback, checkSameOrigin, isLoopbackHost } from "./loopback.ts";
export { type JsonObject } from "./openapi.ts";
export { pageQuery, readPage, type PagedList } from "./page.ts";
export { mapLegacyPath } from "./path.ts";
export { RateLimit } from "./rate-limit.ts";
export { checkJsonType, createValidationError, readBody } from "./request-input.ts";
export {
  alreadyAnswered,
  defineDirectRoute,
  defineRoute,
  StatusAnswer,
  type Access,
  type ApiMethod,
  type ApiRoute,
  type Exchange,
  type GuardedRequest,
  type HeaderReader,
  type Peer,
} from "./route.ts";
export { createTokenCheck } from "./static-token.ts";
export { createObserver, startScope, type Observer, type Scope } from "./scope.ts";
export { defineUpgradeRoute } from "./upgrade-route.ts";
