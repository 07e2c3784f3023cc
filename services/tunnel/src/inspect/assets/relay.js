// Calls to the inspector's own API.

/**
 * @typedef {{ id: string, url: string, target: string, error: string }} Tunnel
 * @typedef {{ relay: string, connected: boolean, connected_ms: number, tunnels: Tunnel[] }} State
 * @typedef {{ second: number, requests: number[], failures: number[], p50_ms: number | null }} Trace
 * @typedef {{ id: string, method: string, path: string, status: number, latency_ms: number, timestamp: string,
 *   state: "open" | "complete" | "broken", client: string, error: string, request_bytes: number,
 *   response_bytes: number, replay_of?: string }} Summary
 * @typedef {{ encoding: "utf8" | "base64", text: string, bytes: number, truncated: boolean, decoded?: string }} Body
 * @typedef {{ line: string, headers: [string, string][], body: Body }} Message
 * @typedef {Summary & { request: Message | null, response: Message | null }} Detail
 * @typedef {{ method?: string, path?: string, headers?: [string, string][], body?: string }} Edits
 * @typedef {{ status: string, response_status: number, latency_ms: number, request_id: string }} Replayed
 * @typedef {{ id: string, one_time: boolean, status: string, expires_at: string }} Share
 */

/** Refused by the relay; the message is for the user. */
export class RelayError extends Error {}

/** @param {string} tunnelId @param {string} query @returns {Promise<{ requests: Summary[], captured: number }>} */
export function listRequests(tunnelId, query) {
  return call("GET", `${tunnelId}/requests?limit=1000&q=${encodeURIComponent(query)}`);
}

/** @param {string} tunnelId @param {string} id @returns {Promise<Detail>} */
export function getRequest(tunnelId, id) {
  return call("GET", `${tunnelId}/requests/${id}`);
}

/** @param {string} tunnelId @param {string} id @param {Edits} edits @returns {Promise<Replayed>} */
export function replayRequest(tunnelId, id, edits) {
  return call("POST", `${tunnelId}/replay/${id}`, edits);
}

/** @param {string} tunnelId @param {{ expires_in: string, one_time: boolean }} wish @returns {Promise<Share & { url: string }>} */
export function createShare(tunnelId, wish) {
  return call("POST", `${tunnelId}/share`, wish);
}

/** @param {string} tunnelId @returns {Promise<{ shares: Share[] }>} */
export function listShares(tunnelId) {
  return call("GET", `${tunnelId}/shares`);
}

/** @param {string} tunnelId @param {string} id */
export function revokeShare(tunnelId, id) {
  return call("DELETE", `${tunnelId}/shares/${id}`);
}

/** URL of the archive of all listed requests. @param {string} tunnelId @param {string} query */
export function formatArchiveUrl(tunnelId, query) {
  return `/api/tunnels/${tunnelId}/requests?format=har&q=${encodeURIComponent(query)}`;
}

/** @param {string} method @param {string} path @param {object} [body] */
async function call(method, path, body) {
  const response = await fetch(`/api/tunnels/${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { "content-type": "application/json" } }),
  });
  const text = await response.text();
  const value = text === "" ? undefined : JSON.parse(text);
  if (!response.ok) throw new RelayError(value?.detail ?? `The relay answered ${response.status}.`);
  return value;
}
