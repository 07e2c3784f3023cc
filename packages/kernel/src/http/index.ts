// The HTTP API of a service: operations, guard, listener, and common parts of operations.
export { createApi, type Api } from "./api.ts";
export type { ApiOptions, Guard } from "./api-options.ts";
export { createEtag, isNotModified, requireIfMatch } from "./etag.ts";
export { createBearerGuard } from "./guard.ts";
export { listenHttp, type HttpListener, type ListenAddress, type ListenOptions } from "./listen.ts";
export {
  checkLoopback,
  checkSameOrigin,
  isLoopbackHost,
  type LoopbackRequest,
  type LoopbackVerdict,
} from "./loopback.ts";
export { buildOpenApi, type JsonObject, type OpenApiInfo } from "./openapi.ts";
export { pageQuery, readPage, type Page, type PagedList, type PageRequest } from "./page.ts";
export { mapLegacyPath } from "./path.ts";
export { createValidationError, readBody, type InputError } from "./request-input.ts";
export {
  alreadyAnswered,
  defineDirectRoute,
  defineRoute,
  type Access,
  type ApiMethod,
  type ApiRoute,
  type BodyKind,
  type DirectExchange,
  type Exchange,
  type GuardedRequest,
  type HeaderReader,
  type Peer,
} from "./route.ts";
