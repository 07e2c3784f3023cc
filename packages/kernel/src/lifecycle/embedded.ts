// The lifecycle of a service inside another program, which starts and stops it by calls.
import type { Logger } from "../log/index.ts";
import { DrainHooks } from "./drain.ts";
import { toLiveSecret } from "../secrets/index.ts";
import type { ListenerReport } from "./parent.ts";
import type { Lifecycle } from "./service.ts";

const DRAIN_MS = 5_000;
/** Time to abort remaining work: no end of a process closes what is left. */
const GRACE_MS = 30_000;

/** A lifecycle whose events are calls. */
export interface EmbeddedLifecycle extends Lifecycle {
  /** The listeners that were reported. */
  readonly listeners: readonly ListenerReport[];
  /** As SIGHUP. Rejects if a hook fails. */
  reload(): Promise<void>;
  /**
   * As SIGTERM: drains, at most for `drainMs` (default 5 000), and then aborts what is left. Rejects if a part failed or
   * did not stop within half a minute after that, which is logged. Later calls return the same promise.
   */
  close(drainMs?: number): Promise<void>;
}

/** Creates one. `log` gets the errors of stopping. */
export function createEmbeddedLifecycle(log: Logger): EmbeddedLifecycle {
  const stopping = new AbortController();
  const hooks = new DrainHooks();
  const reloads: (() => void | Promise<void>)[] = [];
  const listeners: ListenerReport[] = [];
  let closed: Promise<void> | undefined;
  const drain = async (drainMs: number): Promise<void> => {
    stopping.abort();
    const isClean = await hooks.run(drainMs, log, GRACE_MS);
    if (!isClean) throw new Error("a part of the service did not stop: its log names it");
  };
  const close = (drainMs = DRAIN_MS): Promise<void> => (closed ??= drain(drainMs));
  return {
    listeners,
    stopping: stopping.signal,
    onDrain: (name, hook, phase) => hooks.add(name, hook, phase),
    onReload: (_name, hook) => void reloads.push(hook),
    onReady: (callback) => void setImmediate(callback),
    followSecret: (_name, value) => toLiveSecret(value),
    reportListener: (listener) => void listeners.push(listener),
    stop: () => void close().catch(() => undefined),
    reload: async () => {
      for (const hook of reloads) await hook();
    },
    close,
  };
}
