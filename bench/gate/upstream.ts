// The upstream of all gateway cases: nginx with static responses, on the load's core.
import { startStaticNginx, type StaticNginx } from "../harness/static-nginx.ts";

/** Bytes of the answer to any path but `/large`. */
export const SMALL_BODY_BYTES = 100;
/** Bytes of the answer to `/large`. */
export const LARGE_BODY_BYTES = 1_048_576;

/** Starts the upstream in a folder below `scratch`. */
export function startUpstream(scratch: string, cores: string): Promise<StaticNginx> {
  const sizes = { smallBytes: SMALL_BODY_BYTES, largeBytes: LARGE_BODY_BYTES };
  return startStaticNginx({ scratch, cores, ...sizes });
}
