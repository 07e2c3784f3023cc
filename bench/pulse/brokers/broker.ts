// What a contender of the broker's cases has to be able to do.
import type { Workspace } from "../../harness/case.ts";
import type { Protocol } from "../broker-load.ts";

/** How a case wants a broker set up. */
export interface BrokerSetup {
  cores: string;
  /** Exists, empty, and is removed when the case ends. */
  folder: string;
  workspace: Workspace;
}

/** A broker that runs. */
export interface RunningBroker {
  pid: number;
  /** Where each protocol listens. */
  ports: Partial<Record<Protocol, number>>;
}

/** A broker that is started for a case. */
export interface BenchBroker {
  name: string;
  isOurs: boolean;
  /** Why it cannot take part, or undefined. */
  explainAbsence(): string | undefined;
  readVersion(): string;
  start(setup: BrokerSetup): Promise<RunningBroker>;
}
