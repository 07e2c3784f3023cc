// Addresses of messaging's pages.

/** Path of a tab of a topic; `tenant` if it is not that of the session. */
export function topicPath(name: string, tab = "tail", tenant?: string): string {
  const path = `/messaging/topics/${encodeURIComponent(name)}/${tab}`;
  return tenant === undefined ? path : `${path}?tenant=${encodeURIComponent(tenant)}`;
}

/** Path of the history of a key over all topics. */
export function eventsPath(key: string): string {
  return `/messaging/events?range=all&key=${encodeURIComponent(key)}`;
}
