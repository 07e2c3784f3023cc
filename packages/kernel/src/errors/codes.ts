// Error codes with their HTTP status and title.

/** HTTP form of a code. The title is the same for every occurrence (RFC 9457 section 3.1.3). */
interface ErrorKind {
  status: number;
  title: string;
}

/**
 * All error codes of the platform. Codes are part of the public API: they are added, never renamed. Statuses are
 * defined by RFC 9110 section 15, RFC 6585 and RFC 9457.
 */
export const ERROR_TABLE = {
  bad_request: { status: 400, title: "Bad request" },
  validation_failed: { status: 400, title: "Validation failed" },
  unsupported_ai_request: { status: 400, title: "Not a request to a model" },
  prompt_blocked: { status: 400, title: "Prompt blocked" },
  model_price_unknown: { status: 400, title: "Model without a price" },
  unauthorized: { status: 401, title: "Unauthorized" },
  forbidden: { status: 403, title: "Forbidden" },
  mfa_required: { status: 403, title: "Second factor required" },
  policy_denied: { status: 403, title: "Denied by policy" },
  ip_blocked: { status: 403, title: "Address not allowed" },
  not_found: { status: 404, title: "Not found" },
  method_not_allowed: { status: 405, title: "Method not allowed" },
  not_acceptable: { status: 406, title: "Not acceptable" },
  request_timeout: { status: 408, title: "Request timeout" },
  conflict: { status: 409, title: "Conflict" },
  channel_unavailable: { status: 409, title: "Channel unavailable" },
  configured: { status: 409, title: "Set by the configuration" },
  remote_segments_exist: { status: 409, title: "Segments are in object storage" },
  gone: { status: 410, title: "Gone" },
  length_required: { status: 411, title: "Length required" },
  precondition_failed: { status: 412, title: "Precondition failed" },
  payload_too_large: { status: 413, title: "Payload too large" },
  uri_too_long: { status: 414, title: "URI too long" },
  unsupported_media_type: { status: 415, title: "Unsupported media type" },
  range_not_satisfiable: { status: 416, title: "Range not satisfiable" },
  misdirected_request: { status: 421, title: "Misdirected request" },
  unprocessable: { status: 422, title: "Unprocessable content" },
  offload_compacted: { status: 422, title: "Compacted topics stay local" },
  offload_loop: { status: 422, title: "Uploads would cause uploads" },
  offload_unreachable: { status: 422, title: "Object storage cannot be used" },
  too_many_partitions: { status: 422, title: "Too many partitions" },
  recipient_suppressed: { status: 422, title: "Recipient suppressed" },
  recipient_rejected: { status: 422, title: "Recipient rejected" },
  template_failed: { status: 422, title: "Template failed" },
  upgrade_required: { status: 426, title: "Upgrade required" },
  precondition_required: { status: 428, title: "Precondition required" },
  too_many_requests: { status: 429, title: "Too many requests" },
  rate_limit_exceeded: { status: 429, title: "Token limit exceeded" },
  insufficient_quota: { status: 429, title: "Budget exceeded" },
  header_fields_too_large: { status: 431, title: "Header fields too large" },
  internal: { status: 500, title: "Internal error" },
  not_implemented: { status: 501, title: "Not implemented" },
  not_available_yet: { status: 501, title: "Not available yet" },
  route_not_found: { status: 502, title: "No route for this request" },
  upstream_unreachable: { status: 502, title: "Upstream unreachable" },
  upstream_invalid_response: { status: 502, title: "Invalid response from upstream" },
  middleware_failed: { status: 502, title: "Middleware failed" },
  unavailable: { status: 503, title: "Service unavailable" },
  not_built: { status: 503, title: "Not built" },
  overloaded: { status: 503, title: "Overloaded" },
  cold_unavailable: { status: 503, title: "Object storage unavailable" },
  queue_full: { status: 503, title: "Queue full" },
  /** Messaging, as its clients spell it. */
  ERR_BACKPRESSURE: { status: 503, title: "Too many messages wait" },
  circuit_open: { status: 503, title: "Circuit open" },
  upstream_timeout: { status: 504, title: "Upstream timeout" },
  queue_timeout: { status: 504, title: "Queue wait timed out" },
  http_version_not_supported: { status: 505, title: "HTTP version not supported" },
  insufficient_storage: { status: 507, title: "Insufficient storage" },
} as const satisfies Record<string, ErrorKind>;

/** An error code. */
export type ErrorCode = keyof typeof ERROR_TABLE;

/** True if a string is an error code. */
export function isErrorCode(value: string): value is ErrorCode {
  return Object.hasOwn(ERROR_TABLE, value);
}
