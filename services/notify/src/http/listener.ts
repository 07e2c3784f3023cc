// The listener of the API.
import type { AdminFeeds } from "@platform/kernel/feeds";
import { listenHttp, type Api } from "@platform/kernel/http";
import { explainListenError } from "@platform/kernel/lifecycle";
import type { MetricRegistry } from "@platform/kernel/metrics";
import type { CertificatePair } from "@platform/kernel/tls";
import type { NotifyConfig } from "../config.ts";

/** Options of {@link startListener}. */
interface ListenerOptions {
  config: NotifyConfig;
  api: Api;
  feeds: AdminFeeds;
  metrics: MetricRegistry;
  hasCredentials: boolean;
  /** With it the listener accepts TLS only. */
  tls: CertificatePair | undefined;
}

/** Starts to listen. Without credentials it listens on the loopback interface, unless an address is configured. */
export async function startListener(options: ListenerOptions) {
  const { config, api, feeds, metrics, hasCredentials, tls } = options;
  const fallback = { host: hasCredentials ? undefined : "127.0.0.1", port: config.port };
  const { host = "::", port } = config.addr ?? fallback;
  const listener = await listenHttp({
    address: { host, port },
    fetch: api.fetch,
    intercept: api.intercept,
    onUpgrade: feeds.onUpgrade,
    connectionsMax: config.connections_max,
    metrics,
    ...(tls === undefined ? {} : { tls }),
  }).catch(async (error: unknown) => {
    throw await explainListenError(error, { host, port }, "--port or PLATFORM_NOTIFY_ADDR");
  });
  return { ...listener, host, port: listener.port ?? port };
}
