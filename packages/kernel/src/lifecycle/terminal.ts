// The terminal on which a program runs: SIGHUP means that it was closed, or that an operator requests a reload.
import { isatty } from "node:tty";

const STANDARD_STREAMS = [0, 1, 2];

/** The terminal of this process, if it has one. */
export interface Terminal {
  /** True if the process was started on a terminal that exists no longer. */
  isClosed(): boolean;
}

/** Notes which standard streams are a terminal; `nohup` and supervisors leave none. */
export function openTerminal(): Terminal {
  const streams = STANDARD_STREAMS.filter((stream) => isatty(stream));
  return {
    // Windows sends SIGHUP only when the console is closed, and ends the process shortly after. Elsewhere the system
    // detaches the descriptors of a closed terminal, which are none from then on.
    isClosed: () => process.platform === "win32" || streams.some((stream) => !isatty(stream)),
  };
}
