// The configuration that a worker currently applies. It changes between two requests, never during one.
import type { AddressSet } from "@platform/kernel/network";
import type { CompiledRoute } from "../exchange/exchange.ts";
import type { ActiveIdentity } from "../filter/identity/identity.ts";
import type { RouteTable } from "../route/route-table.ts";
import type { GlobalSpec } from "../shared-state/index.ts";
import type { SocketProxy } from "./socket-proxy.ts";

/** The active configuration; its fields are replaced in place. */
export interface ActiveConfig {
  globals: GlobalSpec;
  table: RouteTable<CompiledRoute>;
  trusted: AddressSet;
  identity: ActiveIdentity;
  control: SocketProxy;
  /** Undefined if the console is not on this listener. */
  console: SocketProxy | undefined;
}
