// The configuration that a worker currently applies. It changes between two requests, never during one.
import type { AddressSet } from "@platform/kernel/network";
import type { Identity } from "../filter/identity.ts";
import type { CompiledRoute } from "../route/compiled-route.ts";
import type { RouteTable } from "../route/route-table.ts";
import type { GlobalSpec } from "../shared-state/index.ts";
import type { ControlProxy } from "./control-proxy.ts";

/** The active configuration; its fields are replaced in place. */
export interface ActiveConfig {
  globals: GlobalSpec;
  table: RouteTable<CompiledRoute>;
  trusted: AddressSet;
  identity: Identity;
  control: ControlProxy;
}
