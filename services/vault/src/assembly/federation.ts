// Federation: buckets that are those of remotes.
import type { Service } from "@platform/chassis";
import { Federation } from "../federation/federation.ts";
import type { Storage } from "./storage.ts";

/** Creates the federation of the object API. */
export function openFederation({ log, clock, metrics }: Service, { store }: Storage): Federation {
  const federation = new Federation({ store, clock, log });
  metrics.collect({
    name: "vault-federation",
    collect: () => [
      {
        type: "counter",
        name: "platform_vault_federation_lists_left_out_total",
        help: "Listings of buckets without those of a remote, which did not answer.",
        samples: [{ labels: [], value: federation.buckets.leftOut }],
      },
    ],
  });
  return federation;
}
