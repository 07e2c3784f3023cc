// Checks and prepares the module of an HTTP guest.
import { createHash } from "node:crypto";
import { GuestError } from "../errors.ts";
import { meterModule } from "../metering/meter-module.ts";
import { readOutline } from "../module/outline.ts";
import { PAGE_BYTES } from "../module/sandbox.ts";
import { READ_BODY, checkHandler } from "./http-abi.ts";

/** Maximum linear memory of an instance in bytes. */
const GUEST_MEMORY_BYTES_MAX = 16 * 1024 * 1024;
/** Maximum bytes of a module. */
export const GUEST_MODULE_BYTES_MAX = 8 * 1024 * 1024;
const TABLE_ENTRIES_MAX = 100_000;

/** A checked and compiled guest. It can be posted to other threads. */
export interface HttpModule {
  /** SHA-256 of the original bytes in hex. */
  readonly sha256: string;
  /** Size of the original bytes. */
  readonly bytes: number;
  /** `module.function` of each import. */
  readonly imports: readonly string[];
  /** The guest imports `read_body`: its calls may wait, and return promises. */
  readonly readsBody: boolean;
  /** The compiled module, whose instructions are counted. */
  readonly compiled: WebAssembly.Module;
}

/**
 * Validates a module, limits its memory, adds the counting of fuel and compiles it. Throws a GuestError; the message of one
 * that is refused contains an offset in the module where there is one.
 */
export function compileHttpModule(source: Uint8Array): HttpModule {
  if (source.length > GUEST_MODULE_BYTES_MAX)
    throw new GuestError(
      "module-too-large",
      `The module has ${source.length} bytes; the limit is ${GUEST_MODULE_BYTES_MAX}.`,
    );
  const outline = readOutline(source);
  checkHandler(outline);
  // The counter adds a global after those of the module, so the module must be valid without it.
  compile(source, "is not valid");
  const metered = meterModule(source, outline, {
    memoryPagesMax: GUEST_MEMORY_BYTES_MAX / PAGE_BYTES,
    tableEntriesMax: TABLE_ENTRIES_MAX,
  });
  return {
    sha256: createHash("sha256").update(source).digest("hex"),
    bytes: source.length,
    imports: outline.imports.map(({ from, name }) => `${from}.${name}`),
    readsBody: outline.imports.some(({ name }) => name === READ_BODY),
    compiled: compile(metered, "cannot be metered"),
  };
}

function compile(bytes: Uint8Array, fault: string): WebAssembly.Module {
  try {
    return new WebAssembly.Module(bytes.slice());
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new GuestError("invalid-module", `The module ${fault}: ${reason}`);
  }
}
