// The addresses of the gateway's listeners: the main one, and that of the admin API if it has its own.
import type { Lifecycle } from "@platform/kernel/lifecycle";
import type { GateConfig } from "../config/document.ts";
import { type BoundAddress, type ClaimedAddress, claimListenAddress } from "./listen-probe.ts";

/** Addresses that no other gateway can take until they are released. */
export interface ClaimedListeners {
  main: BoundAddress;
  /** The listener for plain HTTP; undefined if there is none. */
  plain: BoundAddress | undefined;
  /** The listener without TLS for programs on this machine; undefined if there is none. */
  local: BoundAddress | undefined;
  /** Undefined if the main listener serves the admin API. */
  admin: BoundAddress | undefined;
  release: () => void;
}

/** Claims the configured addresses. Throws an Error that names the option of the one that is not available. */
export async function claimListeners(config: GateConfig): Promise<ClaimedListeners> {
  const claimed: ClaimedAddress[] = [];
  const release = (): void => claimed.forEach((one) => one.release());
  const claim = async (wanted: GateConfig["addr"], remedy: string): Promise<BoundAddress> => {
    const one = await claimListenAddress(wanted, remedy);
    claimed.push(one);
    return one.address;
  };
  const claimIfSet = async (
    wanted: GateConfig["http_addr"],
    remedy: string,
  ): Promise<BoundAddress | undefined> =>
    wanted === undefined ? undefined : claim(wanted, remedy);
  return {
    main: await claim(config.addr, "--addr or PLATFORM_GATE_ADDR"),
    admin: await claimIfSet(config.admin_addr, "--admin-addr or PLATFORM_GATE_ADMIN_ADDR"),
    plain: await claimIfSet(config.http_addr, "--http-addr or PLATFORM_GATE_HTTP_ADDR"),
    local: await claimIfSet(config.local_addr, "--local-addr or PLATFORM_GATE_LOCAL_ADDR"),
    release,
  };
}

/** The listeners that are opened: without TLS the main one serves programs on this machine, too. */
export function chooseListeners(claimed: ClaimedListeners, isSecure: boolean): ClaimedListeners {
  return isSecure ? claimed : { ...claimed, local: undefined };
}

/** Reports the listeners as started. */
export function reportListeners(
  { main, plain, local, admin }: ClaimedListeners,
  isSecure: boolean,
  lifecycle: Pick<Lifecycle, "reportListener">,
): void {
  const name = isSecure ? "https" : "http";
  lifecycle.reportListener({ name, ...main });
  if (plain !== undefined) lifecycle.reportListener({ name: "plain", ...plain });
  if (local !== undefined) lifecycle.reportListener({ name: "local", ...local });
  if (admin !== undefined) lifecycle.reportListener({ name: "admin", ...admin });
}
