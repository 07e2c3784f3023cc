// The listener of the API.
import type { Service } from "@platform/chassis";
import type { HttpListener, ListenOptions } from "@platform/kernel/http";
import type { NotifyConfig } from "../config.ts";

/** Starts to listen. Without credentials it listens on the loopback interface, unless an address is configured. */
export function startListener(
  config: NotifyConfig,
  service: Service,
  handlers: Pick<ListenOptions, "fetch" | "intercept" | "onUpgrade">,
): Promise<HttpListener> {
  const host = service.verifier === undefined ? "127.0.0.1" : undefined;
  return service.serve({
    ...handlers,
    address: config.addr ?? { host, port: config.port },
    setting: "--port or PLATFORM_NOTIFY_ADDR",
    connectionsMax: config.connections_max,
  });
}
