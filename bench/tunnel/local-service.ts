// The local service of all tunnel cases: nginx with a small and a large file.
import { startStaticNginx, type StaticNginx } from "../harness/static-nginx.ts";

/** Bytes of the answer to any path but `/large`. */
export const SMALL_BODY_BYTES = 1_024;
/** Bytes of the answer to `/large`. */
const LARGE_BODY_BYTES = 67_108_864;

/** Starts the service in a folder below `scratch`. */
export function startLocalService(scratch: string, cores: string): Promise<StaticNginx> {
  const sizes = { smallBytes: SMALL_BODY_BYTES, largeBytes: LARGE_BODY_BYTES };
  return startStaticNginx({ scratch, cores, ...sizes });
}
