// What every proxy under test is: something that a setup starts on a port.
import type { PinnedProcess } from "../../harness/process.ts";

/** The work that a proxy is set up for. Each proxy writes its own configuration from it. */
export interface ProxySetup {
  /** Where it listens, on 127.0.0.1. */
  port: number;
  upstreamPort: number;
  /** Cores as `taskset -c` takes them. */
  cores: string;
  workers: number;
  /** A folder of its own for configuration and logs. */
  folder: string;
  /** Pass bodies on as they come instead of gathering them. */
  unbuffered: boolean;
  /** How much nginx reads at a time when unbuffered; its default of 4 KiB if absent. */
  bufferKib?: number;
  /** Write an access log line for each request. */
  accessLog: boolean;
  /** Demand an HS256 bearer token signed with this secret. */
  jwtSecret?: string;
  /** Path prefixes that all lead to the upstream; ["/"] if absent. */
  prefixes?: readonly string[];
}

/** One contender. */
export interface Proxy {
  name: string;
  /** Ours are compared with the others. */
  isOurs: boolean;
  /** Why it cannot run here; undefined if it can. */
  explainAbsence(): string | undefined;
  readVersion(): string;
  start(setup: ProxySetup): PinnedProcess;
}
