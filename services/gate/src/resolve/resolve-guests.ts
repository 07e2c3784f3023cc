// Resolves the WebAssembly guests of a route.
import type { RouteConfig } from "../config/route.ts";
import { describeGuestConfig, listGuestReferences } from "../config/route-middleware.ts";
import type { GuestsSpec, SplitSticky } from "../shared-state/index.ts";

/** Use of guests by a route; undefined if it uses none. */
export function resolveGuests(config: RouteConfig): GuestsSpec | undefined {
  if (listGuestReferences(config).length === 0) return undefined;
  const { middleware, response_middleware: response, wasm_split: split } = config;
  return {
    config: describeGuestConfig(config.middleware_config),
    ...(middleware === undefined ? {} : { request: middleware }),
    ...(response === undefined ? {} : { response }),
    ...(split === undefined
      ? {}
      : {
          split: {
            targets: split.targets.map(({ middleware_name: name, weight }) => ({ name, weight })),
            sticky: readSticky(split.sticky ?? "none"),
          },
        }),
  };
}

function readSticky(sticky: string): SplitSticky {
  const [by = "", name = ""] = sticky.split(":", 2);
  if (by === "header") return { by, name };
  return { by: by === "ip" || by === "cookie" ? by : "none" };
}
