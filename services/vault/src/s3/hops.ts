// Requests of other stores that hold this one as a remote: a request that comes back to the store that sent it is refused.
import { S3Error } from "../model/s3-error.ts";
import type { RequestFields } from "./wire/fields.ts";

const HOPS_MAX = 3;

/** Throws InvalidRequest for a request that this store has sent itself, or that too many stores have passed on. */
export function requireNoLoop(fields: RequestFields, storeId: string): void {
  const text = fields.getFilled("x-amz-hops");
  if (text === undefined) return;
  const hops = text.split(",").map((hop) => hop.trim());
  if (storeId !== "" && hops.includes(storeId))
    throw new S3Error(
      "InvalidRequest",
      "The request comes from this store: a remote leads back here.",
    );
  if (hops.length > HOPS_MAX)
    throw new S3Error("InvalidRequest", `The request has passed more than ${HOPS_MAX} stores.`);
}
