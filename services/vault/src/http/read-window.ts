// How much of an object may be in memory for one request.
import type { ReadWindow } from "../blob/blob-reader.ts";
import type { S3Request } from "./request.ts";

/** The request's share of the memory for answers that clients have not read yet. */
export function createReadWindow(request: S3Request): ReadWindow {
  const { exchange } = request;
  return {
    get bytes() {
      return exchange.windowBytes;
    },
    claim(bytes) {
      if (request.isLive) exchange.claimAhead(bytes);
    },
  };
}
