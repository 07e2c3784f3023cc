// The interface of tunnels under test.
import type { Workspace } from "../../harness/case.ts";

/** The work that a tunnel is set up for. */
export interface TunnelSetup {
  /** Port of the local service on 127.0.0.1. */
  localPort: number;
  /** Cores in the format of `taskset -c`. */
  cores: string;
  /** Folder for configuration, keys and data. */
  folder: string;
  workspace: Workspace;
}

/** A tunnel that is open. */
export interface OpenTunnel {
  /** Address of the public side. */
  port: number;
  /** Host field of public requests. */
  host: string;
  /** Processes of both sides. */
  pids: readonly number[];
}

/** One contender. */
export interface Tunnel {
  name: string;
  /** True for our tunnels, which are compared with the others. */
  isOurs: boolean;
  /** Reason why it cannot run here; undefined if it can. */
  explainAbsence(): string | undefined;
  readVersion(): string;
  /** Starts both sides; resolves when the public side accepts connections. */
  open(setup: TunnelSetup): Promise<OpenTunnel>;
}
