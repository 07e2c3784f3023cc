// The interface of proxies under test.
import type { PinnedProcess } from "../../harness/process.ts";

/** The work that a proxy is set up for. Each proxy writes its own configuration from it. */
export interface ProxySetup {
  /** Port on 127.0.0.1. */
  port: number;
  upstreamPort: number;
  /** Cores in the format of `taskset -c`. */
  cores: string;
  workers: number;
  /** Folder for configuration and logs. */
  folder: string;
  /** Forwards bodies as they arrive instead of buffering them. */
  unbuffered: boolean;
  /** Size of nginx's reads without buffering; default 4 KiB. */
  bufferKib?: number;
  /** Writes an access log line for each request. */
  accessLog: boolean;
  /** Counts the requests of each client address, with a limit that the load does not reach. */
  rateLimit?: boolean;
  /** Stores responses for an hour and answers from the store. */
  cache?: boolean;
  /** Sets `X-Guest: set` in each request by code of the user: this module, or a hook. */
  middleware?: Buffer;
  /** Requests are for a model: fields of our route and of our configuration. */
  models?: { route: Record<string, unknown>; config?: Record<string, unknown> };
  /** Requires an HS256 bearer token signed with this secret. */
  jwtSecret?: string;
  /** Path prefixes of the upstream; default ["/"]. */
  prefixes?: readonly string[];
}

/** One contender. */
export interface Proxy {
  name: string;
  /** True for our proxies, which are compared with the others. */
  isOurs: boolean;
  /** Reason why it cannot run here; undefined if it can. */
  explainAbsence(): string | undefined;
  readVersion(): string;
  start(setup: ProxySetup): PinnedProcess;
}
