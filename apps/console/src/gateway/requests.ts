// Requests as the gateway's access log lists them.
import type { Answer } from "../contract/answer.ts";
import { withQuery } from "../api/api.ts";
import { callService } from "../session/session.ts";
import type { Route } from "./routes.ts";

/** A finished request. */
export type LoggedRequest = RequestPage["items"][number];

/** A page of requests, newest first. */
export type RequestPage = Answer<"gate", "GET /admin/access-log">;

/** A filter; empty and undefined members accept everything. */
export interface RequestFilter {
  route?: string | undefined;
  /** `404` or `5xx`. */
  status?: string | undefined;
  q?: string | undefined;
  cursor?: string | undefined;
  limit: number;
}

/** Key of a request in lists. */
export function idOf({ timestamp, request_id: id }: LoggedRequest): string {
  return `${timestamp} ${id}`;
}

/** The end of a request in epoch ms: the log lists requests when they end, streams long after their start. */
export function endMsOf({ timestamp, latency_ms: ms }: LoggedRequest): number {
  return Date.parse(timestamp) + ms;
}

/** Loads a page. */
export async function loadRequests(filter: RequestFilter): Promise<RequestPage> {
  return await callService<RequestPage>("gate", withQuery("/admin/access-log", { ...filter }));
}

/** Label of a route in the access log: without its methods. */
export function labelOf({ host = "", prefix }: Route): string {
  return host.toLowerCase() + prefix;
}

/** Path of the page with the requests of a route. */
export function logPath(route: Route): string {
  return withQuery("/gateway/log", { route: labelOf(route) });
}
