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
  readonly key: string;
  readonly handle: Handle;
  readonly close: () => void;
}

/** Keeps at most one socket, that of the service of this process. */
export class HeldSocket {
  /** The socket without a process. */
  #held: Held | undefined;
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

  /** Closes a socket without a process: connections are refused. */
  release(): void {
    clearTimeout(this.#timer);
    this.#held?.close();
    this.#held = undefined;
  }

  /** Releases the socket, and holds none from now on. */
  end(): void {
    this.#isOver = true;
    this.release();
  }

  #create(create: CreateHandle, parameters: readonly unknown[]): Handle | number {
    const key = JSON.stringify(parameters);
    const held = this.#held;
    if (held?.key === key) {
      clearTimeout(this.#timer);
      this.#held = undefined;
      return held.handle;
    }
    // The service has another address now.
    this.release();
    const handle = create(...parameters);
    if (typeof handle === "number") return handle;
    const close = handle.close.bind(handle);
    handle.close = (callback) => {
      if (this.#isOver || this.#held !== undefined) return close(callback);
      this.#held = { key, handle, close };
      return undefined;
    };
    return handle;
  }
}
