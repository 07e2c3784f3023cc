// The HTTP API of a service: operations, guard, listener, and common parts of operations.
export { bytes, JsonText, NO_BODY, StatusAnswer, type AnswerOf } from "./answer.ts";
export { createApi, type Api } from "./api.ts";
export type { ApiOptions } from "./api-options.ts";
export { findOutflow } from "./connections.ts";
export { createEtag, isNotModified, requireIfMatch, requirePreconditions } from "./etag.ts";
export { listenHttp, type HttpListener, type ListenAddress, type ListenOptions } from "./listen.ts";
export { type JsonObject } from "./openapi.ts";
export {
  cursorQuery,
  decodeCursor,
  encodeCursor,
  linePosition,
  nextCursor,
  pageQuery,
  readPage,
  type PagedList,
} from "./page.ts";
export * from "./parts.ts";
export { mapLegacyPath } from "./path.ts";
export { RateLimit } from "./rate-limit.ts";
export { checkJsonType, readBody } from "./request-input.ts";
export {
  alreadyAnswered,
  defineDirectRoute,
  defineRoute,
  type Access,
  type ApiMethod,
  type ApiRoute,
  type AuthorizedRequest,
  type Exchange,
  type GuardedRequest,
  type HeaderReader,
} from "./route.ts";
export { createObserver, startScope, type Observer, type Scope } from "./scope.ts";
export { defineUpgradeRoute } from "./upgrade-route.ts";
