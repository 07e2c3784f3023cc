// Destinations: the names by which clients send and subscribe.
import { StompError } from "./frame/stomp-error.ts";

/*
 *     /topic/orders.eu     the topic orders.eu
 *     orders.eu            the same
 *     /queue/orders.eu     the same; subscribers share the messages, as the group `queue`
 */

/** The group of the subscribers of `/queue/…`. */
export const QUEUE_GROUP = "queue";

/** A destination of a client. */
export interface Destination {
  /** As written before the name; deliveries have the same. */
  prefix: "/topic/" | "/queue/" | "";
  /** The topic, or for subscriptions a pattern. Not validated. */
  name: string;
}

/** Parses a `destination` header. Throws a `StompError` for kinds of destinations that do not exist here. */
export function parseDestination(text: string): Destination {
  for (const prefix of ["/topic/", "/queue/"] as const) {
    if (text.startsWith(prefix)) return { prefix, name: text.slice(prefix.length) };
  }
  if (!text.startsWith("/")) return { prefix: "", name: text };
  throw new StompError(
    "invalid",
    "a destination is /topic/<name>, /queue/<name> or the name of a topic, whose levels are separated by dots",
  );
}
