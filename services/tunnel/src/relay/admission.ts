// The decision about a public request.
import type { Stripping } from "./connected-tunnel.ts";

/** Admitted, without the fields that belong to the relay, or answered: then nothing is left to do. */
export type Admission =
  | { readonly kind: "admitted"; readonly strip: Stripping }
  | { readonly kind: "answered" };
