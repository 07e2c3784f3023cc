// A store with a remote for recorded runs: its options, the bodies of its objects, and the lines that a run prints.
import type { StoreOptions } from "../../src/open-store.ts";
import { makeBytes } from "../store/fixture.ts";

export const BUCKET = "bucket";
/** A small one is in a segment, a large one in a file. */
const SIZES = [5_000, 30_000] as const;

/** A line of a run: the beginning and the end of a change of an object, or a request that changes the remote. */
export type TierLine =
  | { readonly at: "ready" }
  /** `round` names the body; 0 is a deletion. */
  | { readonly at: "begin" | "end"; readonly key: string; readonly round: number }
  | { readonly at: "remote"; readonly name: string; readonly body: string | null };

/** Bodies of 1 000 bytes and less would stay in the index. */
export const TIER_OPTIONS: Partial<StoreOptions> = {
  inlineBytesMax: 1_000,
  segmentRecordBytesMax: 20_000,
  segmentBytesMax: 100_000,
  secrets: { seal: (text) => text, open: (text) => text },
  remoteNetworks: ["127.0.0.0/8"],
};

/** The body that a round writes to a key. */
export function makeTierBody(key: string, round: number): Buffer {
  const index = Number(key.slice(1));
  return makeBytes(SIZES[index % SIZES.length]!, round * 100 + index + 1);
}
