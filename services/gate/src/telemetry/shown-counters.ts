// Names and descriptions of the counters of workers that `/metrics` shows.
import type { WorkerCounter } from "../shared-state/index.ts";

/** Counters that are gauges. */
export const GAUGES: ReadonlySet<WorkerCounter> = new Set([
  "heartbeatMs",
  "connectionsActive",
  "webSocketsActive",
  "unsentBytes",
]);

/** The counters that are shown as they are. */
export const SHOWN_COUNTERS: readonly [counter: WorkerCounter, name: string, help: string][] = [
  ["connectionsAccepted", "platform_gate_connections_total", "Client connections accepted."],
  [
    "shed",
    "platform_gate_shed_total",
    "Connections and requests refused because of max_connections.",
  ],
  ["retries", "platform_gate_retries_total", "Retried requests."],
  ["retriesRefused", "platform_gate_retries_refused_total", "Retries refused by the retry budget."],
  ["ejections", "platform_gate_ejections_total", "Upstream ejections."],
  ["badRequests", "platform_gate_bad_requests_total", "Requests refused before routing."],
  ["accessLogLines", "platform_gate_access_log_lines_total", "Access log lines written."],
  ["accessLogDropped", "platform_gate_access_log_dropped_total", "Access log lines dropped."],
  [
    "addressRefused",
    "platform_gate_address_refused_total",
    "Connections refused because of max_connections_per_address.",
  ],
  [
    "slowBodies",
    "platform_gate_slow_bodies_total",
    "Request bodies refused because they were slower than body_pace_bytes.",
  ],
  [
    "slowReaders",
    "platform_gate_slow_readers_total",
    "Clients disconnected because they read slower than answer_pace_bytes or stopped for idle_timeout_ms.",
  ],
  [
    "unsentDropped",
    "platform_gate_unsent_dropped_total",
    "Clients disconnected because of max_unsent_size.",
  ],
  ["unsentBytes", "platform_gate_unsent_bytes", "Response bytes buffered for slow clients."],
  [
    "descriptorErrors",
    "platform_gate_descriptor_errors_total",
    "Failures with EMFILE or ENFILE (out of file descriptors).",
  ],
  ["rateLimited", "platform_gate_rate_limited_total", "Requests refused by a rate limit."],
  [
    "rateLimitsLocal",
    "platform_gate_rate_limits_local_total",
    "Requests limited by this process alone because Redis did not respond.",
  ],
  [
    "aiAccountsLocal",
    "platform_gate_ai_accounts_local_total",
    "Requests to models whose cost was counted by this gateway alone because Redis did not respond.",
  ],
  [
    "rateKeysEvicted",
    "platform_gate_rate_keys_evicted_total",
    "Keys of rate limits dropped while in use because the table was full.",
  ],
  ["queued", "platform_gate_queued_total", "Requests that waited for a place on their route."],
  ["queueFull", "platform_gate_queue_full_total", "Requests refused because a queue was full."],
  [
    "queueTimeouts",
    "platform_gate_queue_timeouts_total",
    "Requests refused after they had waited for queue_timeout_ms.",
  ],
  ["circuitsOpened", "platform_gate_circuits_opened_total", "Circuits that were opened."],
  [
    "circuitRefused",
    "platform_gate_circuit_refused_total",
    "Requests refused because all circuits of their route were open.",
  ],
  ["cacheHits", "platform_gate_cache_hits_total", "Fresh responses from the cache."],
  ["cacheStale", "platform_gate_cache_stale_total", "Stale responses from the cache."],
  [
    "cacheMisses",
    "platform_gate_cache_misses_total",
    "Responses of upstreams on routes with a cache.",
  ],
  ["cacheStored", "platform_gate_cache_stored_total", "Responses stored in the cache."],
  [
    "cacheRevalidated",
    "platform_gate_cache_revalidated_total",
    "Stored responses that an upstream confirmed with 304.",
  ],
  [
    "cacheDetached",
    "platform_gate_cache_detached_total",
    "Requests upstream that refresh a stale response while its clients already have it.",
  ],
  [
    "compressionSkipped",
    "platform_gate_compression_skipped_total",
    "Responses that were not compressed because all memory for it was in use.",
  ],
  [
    "responseViolations",
    "platform_gate_response_violations_total",
    "Responses that did not conform to the OpenAPI document of their route.",
  ],
  [
    "responsesUnchecked",
    "platform_gate_responses_unchecked_total",
    "Responses that were too large to be checked, or compressed by the upstream.",
  ],
  ["mirrored", "platform_gate_mirrored_total", "Copies of requests that a mirror has answered."],
  ["mirrorFailed", "platform_gate_mirror_failed_total", "Copies of requests that a mirror failed."],
  [
    "mirrorSkipped",
    "platform_gate_mirror_skipped_total",
    "Requests that were not mirrored because of a bound.",
  ],
  ["recorded", "platform_gate_recorded_total", "Recorded exchanges with upstreams."],
  [
    "recordingSkipped",
    "platform_gate_recording_skipped_total",
    "Exchanges that were not recorded because of a bound.",
  ],
  ["connectionsActive", "platform_gate_connections_active", "Open client connections."],
  ["webSocketsActive", "platform_gate_websockets_active", "Open WebSockets."],
  [
    "promptsBlocked",
    "platform_gate_ai_blocked_total",
    "Requests to models refused as prompt injections.",
  ],
  [
    "promptsReported",
    "platform_gate_ai_reported_total",
    "Requests to models that were judged as prompt injections and forwarded.",
  ],
  [
    "modelRequestsUnread",
    "platform_gate_ai_unread_total",
    "Requests of AI routes that passed without being read or metered: WebSockets, and bodies of other kinds.",
  ],
];
