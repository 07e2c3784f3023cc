// Limits of routes that users set through the API: what they name must be below certain folders, and so on.
import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readFileSync,
  realpathSync,
  statSync,
} from "node:fs";
import { isIP } from "node:net";
import { resolve, sep } from "node:path";
import { type AddressPolicy, createAddressPolicy } from "@platform/kernel/egress";
import { listNamed, type NamedValue } from "../config/guarded-fields.ts";
import type { RouteConfig } from "../config/route.ts";
import type { ConfinedSpec } from "../shared-state/index.ts";
import { refuseField } from "./route-fault.ts";

/** Reads a file of at most `bytesMax` bytes. Throws an Error that says why it cannot be used. */
export type ReadFile = (path: string, bytesMax: number) => Buffer;

/** Options of {@link Confinement}. */
export interface ConfinementOptions {
  /** Folders; see the key files_roots. */
  roots: readonly string[];
  /** Names, with `*` at the end for any rest; see the key secret_variables. */
  variables: readonly string[];
  /** Private networks; see the key private_networks. */
  networks: readonly string[];
}

/** The limits of confined routes. */
export class Confinement {
  /** The part that workers check themselves, at each use. */
  readonly spec: ConfinedSpec;
  readonly #variables: readonly string[];
  readonly #policy: AddressPolicy;

  constructor({ roots, variables, networks }: ConfinementOptions) {
    this.spec = { roots: roots.map((root) => resolve(root)), networks };
    this.#variables = variables;
    this.#policy = createAddressPolicy(networks);
  }

  /** Throws `validation_failed` for the first field that names something outside of the limits. */
  check(config: RouteConfig, label: string): void {
    for (const named of listNamed(config)) {
      const fault = this.findFault(named);
      if (fault !== undefined) throw refuseField(label, named.field, named.value, fault);
    }
  }

  /** The reason why a confined route may not name this; undefined if it may. */
  findFault({ kind, value }: NamedValue): string | undefined {
    const who = "only the configuration file and the operator can name it";
    switch (kind) {
      case "file":
      case "folder":
        return isBelow(resolve(value), this.spec.roots)
          ? undefined
          : `is outside of files_roots: ${who}`;
      case "variable":
        return this.#variables.some((name) => matches(name, value))
          ? undefined
          : `is not one of secret_variables: ${who}`;
      case "address":
        return this.#isReachable(value)
          ? undefined
          : `has an address outside of private_networks: ${who}`;
      default:
        return kind satisfies never;
    }
  }

  /** Reads a file. A link that leads out of the folders is refused, whenever it was set. */
  readonly read: ReadFile = (path, bytesMax) => readWithin(this.spec.roots, path, bytesMax);

  // The addresses of other names are checked when they are used.
  #isReachable(url: string): boolean {
    if (!URL.canParse(url)) return true;
    const host = new URL(url).hostname.replace(/^\[|\]$/g, "").replace(/\.$/, "");
    if (isIP(host) !== 0) return this.#policy.isAllowed(host);
    if (host !== "localhost" && !host.endsWith(".localhost")) return true;
    return this.#policy.isAllowed("127.0.0.1") && this.#policy.isAllowed("::1");
  }
}

/** Reads a file that the configuration or the operator names. */
export const readAnyFile: ReadFile = (path, bytesMax) => {
  const descriptor = openRegular(path);
  try {
    return readBounded(descriptor, bytesMax);
  } finally {
    closeSync(descriptor);
  }
};

function readWithin(roots: readonly string[], path: string, bytesMax: number): Buffer {
  const descriptor = openRegular(path);
  try {
    // The file that is open, not the one that the path names now, must be below a folder.
    const opened = fstatSync(descriptor, { bigint: true });
    const real = realpathSync(path);
    const named = statSync(real, { bigint: true });
    const isSame = opened.ino === named.ino && opened.dev === named.dev;
    if (!isSame || !isBelow(real, listReal(roots))) {
      throw new Error("a link leads out of files_roots");
    }
    return readBounded(descriptor, bytesMax);
  } finally {
    closeSync(descriptor);
  }
}

function openRegular(path: string): number {
  // Without O_NONBLOCK, opening a pipe waits for its writer.
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  if (fstatSync(descriptor).isFile()) return descriptor;
  closeSync(descriptor);
  throw new Error("it is not a regular file");
}

function readBounded(descriptor: number, bytesMax: number): Buffer {
  const isLarge = fstatSync(descriptor).size > bytesMax;
  const bytes = isLarge ? undefined : readFileSync(descriptor);
  if (bytes !== undefined && bytes.length <= bytesMax) return bytes;
  throw new RangeError(`the file is larger than ${bytesMax} bytes`);
}

function listReal(roots: readonly string[]): string[] {
  return roots.flatMap((root) => {
    try {
      return [realpathSync(root)];
    } catch {
      // A folder that does not exist contains nothing.
      return [];
    }
  });
}

function isBelow(path: string, folders: readonly string[]): boolean {
  return folders.some(
    (folder) => path === folder || path.startsWith(folder.endsWith(sep) ? folder : folder + sep),
  );
}

function matches(pattern: string, name: string): boolean {
  return pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
}
