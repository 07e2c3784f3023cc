// The addresses of the gateway's listeners: the main one, and that of the admin API if it has its own.
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { GateConfig } from "../config/document.ts";
import { type BoundAddress, claimListenAddress } from "./listen-probe.ts";

/** Addresses that no other gateway can take until they are released. */
export interface ClaimedListeners {
  main: BoundAddress;
  /** The listener for plain HTTP; undefined if there is none. */
  plain: BoundAddress | undefined;
  /** Undefined if the main listener serves the admin API. */
  admin: BoundAddress | undefined;
  release: () => void;
}

/** Claims the configured addresses. Throws an Error that names the option of the one that is not available. */
export async function claimListeners(config: GateConfig): Promise<ClaimedListeners> {
  const main = await claimListenAddress(config.addr, "--addr or PLATFORM_GATE_ADDR");
  const admin =
    config.admin_addr === undefined
      ? undefined
      : await claimListenAddress(config.admin_addr, "--admin-addr or PLATFORM_GATE_ADMIN_ADDR");
  const plain =
    config.http_addr === undefined
      ? undefined
      : await claimListenAddress(config.http_addr, "--http-addr or PLATFORM_GATE_HTTP_ADDR");
  return {
    main: main.address,
    plain: plain?.address,
    admin: admin?.address,
    release: () => {
      main.release();
      plain?.release();
      admin?.release();
    },
  };
}

/** Reports the listeners as started. */
export function reportListeners(
  { main, plain, admin }: ClaimedListeners,
  isSecure: boolean,
  lifecycle: Pick<Lifecycle, "reportListener">,
): void {
  const name = isSecure ? "https" : "http";
  lifecycle.reportListener({ name, ...main });
  if (plain !== undefined) lifecycle.reportListener({ name: "plain", ...plain });
  if (admin !== undefined) lifecycle.reportListener({ name: "admin", ...admin });
}
