// The interface of brokers under test.
import type { Workspace } from "../../harness/case.ts";
import type { Protocol } from "../broker-load.ts";

/** Options of a broker. */
interface BrokerSetup {
  cores: string;
  /** An existing empty folder, removed when the case ends. */
  folder: string;
  workspace: Workspace;
  /** Variables that only our broker knows. */
  env?: Record<string, string>;
}

/** A running broker. */
export interface RunningBroker {
  pid: number;
  /** The port of each protocol. */
  ports: Partial<Record<Protocol | "mqtt", number>>;
}

/** A broker that can be started for a case. */
export interface BenchBroker {
  name: string;
  isOurs: boolean;
  /** Reason why it cannot run here; undefined if it can. */
  explainAbsence(): string | undefined;
  readVersion(): string;
  start(setup: BrokerSetup): Promise<RunningBroker>;
}
