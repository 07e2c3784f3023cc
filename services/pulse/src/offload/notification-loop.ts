// Bucket notifications that would never end: an upload causes a message of this broker, a segment, and another upload.
import { hostname, networkInterfaces } from "node:os";
import { isLoopbackAddress } from "@platform/kernel/config";
import { z } from "zod";
import type { PulseConfig } from "../config.ts";

/** Subscriptions as the platform's storage writes them; other stores do not send to URLs. */
const documentSchema = z.object({
  subscriptions: z.array(
    z.object({
      id: z.string(),
      events: z.array(z.string()),
      webhook: z.string().optional(),
      stomp: z.object({ url: z.string() }).optional(),
      filter: z.object({ prefix: z.string().optional() }).optional(),
    }),
  ),
});
const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/**
 * The id of a subscription in a bucket's notification document that covers uploads below `prefix` and sends to a listener of
 * this broker; `undefined` if there is none, or the document has another form.
 */
export function findLoop(
  document: string,
  prefix: string,
  config: Pick<PulseConfig, "http_addr" | "stomp_addr">,
): string | undefined {
  const read = documentSchema.safeParse(parse(document));
  if (!read.success) return undefined;
  const ports = new Set([config.http_addr.port, config.stomp_addr.port]);
  return read.data.subscriptions.find(({ events, filter, webhook, stomp }) => {
    if (!events.some((name) => name.includes("ObjectCreated"))) return false;
    const covered = filter?.prefix ?? "";
    if (!covered.startsWith(prefix) && !prefix.startsWith(covered)) return false;
    const url = webhook ?? stomp?.url ?? "";
    return URL.canParse(url) && isOwn(new URL(url), ports);
  })?.id;
}

function isOwn({ protocol, hostname: host, port }: URL, ports: ReadonlySet<number>): boolean {
  if (!ports.has(port === "" ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port))) return false;
  const name = host.replace(/^\[|\]$/g, "").toLowerCase();
  if (name === "localhost" || name.endsWith(".localhost") || name === hostname().toLowerCase()) {
    return true;
  }
  const own = Object.values(networkInterfaces()).flatMap((addresses) => addresses ?? []);
  return isLoopbackAddress({ host: name, port: 0 }) || own.some(({ address }) => address === name);
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
