// The listening socket of a service while its process is replaced: connections wait in the system's queue instead of being
// refused. Node's cluster closes the socket with the last process that uses it, and offers no other way to keep it.
import net from "node:net";

/** Time for which connections wait for the next process. */
const WAIT_MS = 10_000;

/** The parts of Node's handles that are used. */
interface Handle {
  close(callback?: () => void): void;
}

/** Creates the sockets of cluster; a number is an error. Missing in other runtimes, where sockets are not held. */
type CreateHandle = (...parameters: readonly unknown[]) => Handle | number;

interface Held {
  readonly handle: Handle;
  readonly close: () => void;
}

/** Sockets of the service of this process: that of its address, and that of the gateway. */
const SOCKETS_MAX = 2;

/** Keeps the sockets of the service of this process. */
export class HeldSocket {
  /** The sockets without a process, by address and port. */
  readonly #held = new Map<string, Held & { readonly port: unknown }>();
  /** Ports of earlier versions, whose sockets are closed with their processes. */
  readonly #discarded = new Set<unknown>();
  #timer: NodeJS.Timeout | undefined;
  #isOver = false;

  constructor() {
    const internals = net as unknown as { _createServerHandle?: CreateHandle };
    const create = internals._createServerHandle;
    if (create === undefined) return;
    internals._createServerHandle = (...parameters) => this.#create(create, parameters);
  }

  /** Bounds the time for which connections wait for a process that is starting. */
  wait(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.release(), WAIT_MS).unref();
  }

  /** Closes sockets without a process: connections are refused. */
  release(): void {
    clearTimeout(this.#timer);
    for (const { close } of this.#held.values()) close();
    this.#held.clear();
  }

  /** Closes the socket of a port now, or with its last process: no further one uses it. */
  discard(port: number): void {
    this.#discarded.add(port);
    for (const [key, held] of this.#held) {
      if (held.port !== port) continue;
      held.close();
      this.#held.delete(key);
      this.#discarded.delete(port);
    }
  }

  /** Releases the sockets, and holds none from now on. */
  end(): void {
    this.#isOver = true;
    this.release();
  }

  #create(create: CreateHandle, parameters: readonly unknown[]): Handle | number {
    const key = JSON.stringify(parameters);
    const [, port] = parameters;
    this.#discarded.delete(port);
    const held = this.#held.get(key);
    if (held !== undefined) {
      this.#held.delete(key);
      if (this.#held.size === 0) clearTimeout(this.#timer);
      return held.handle;
    }
    const handle = create(...parameters);
    if (typeof handle === "number") return handle;
    const close = handle.close.bind(handle);
    handle.close = (callback) => {
      const isDiscarded = this.#discarded.delete(port);
      if (this.#isOver || isDiscarded || this.#held.size >= SOCKETS_MAX) return close(callback);
      this.#held.set(key, { port, handle, close });
      return undefined;
    };
    return handle;
  }
}
