// The functions of the http-wasm `http_handler` ABI and the check of a module against them.
// (https://http-wasm.io/http-handler-abi/)
import { GuestError } from "../errors.ts";
import { WASI_FUNCTIONS, WASI_MODULE } from "../module/abi.ts";
import {
  type FunctionType,
  type ModuleOutline,
  describeType,
  listExportedFunctions,
  quoteImport,
} from "../module/outline.ts";

/** The module from which guests import the functions of the host. */
export const HANDLER_MODULE = "http_handler";
/** The import that may wait for bytes. */
export const READ_BODY = "read_body";

const MEMORY_KIND = 2;

/** Kinds of fields: `header_kind`. */
export const FieldKind = {
  Request: 0,
  Response: 1,
  RequestTrailers: 2,
  ResponseTrailers: 3,
} as const;

/** Kinds of bodies: `body_kind`. */
export const BodyKind = { Request: 0, Response: 1 } as const;

/** Bits of `enable_features`. */
export const Feature = { BufferRequest: 1, BufferResponse: 2 } as const;

/** Levels of `log`. */
export const LogLevel = { Debug: -1, Info: 0, Warn: 1, Error: 2 } as const;

const HANDLER_TYPES: Readonly<Record<string, FunctionType>> = {
  enable_features: type(1, "i32"),
  get_config: type(2, "i32"),
  log: type(3),
  log_enabled: type(1, "i32"),
  get_method: type(2, "i32"),
  set_method: type(2),
  get_uri: type(2, "i32"),
  set_uri: type(2),
  get_protocol_version: type(2, "i32"),
  get_source_addr: type(2, "i32"),
  get_header_names: type(3, "i64"),
  get_header_values: type(5, "i64"),
  set_header_value: type(5),
  add_header_value: type(5),
  remove_header: type(3),
  read_body: type(3, "i64"),
  write_body: type(3),
  get_status_code: type(0, "i32"),
  set_status_code: type(1),
};

/** The page of the ABI prints these with parameters that have no meaning; they are passed, and ignored. */
const PRINTED_TYPES: Readonly<Record<string, FunctionType>> = { remove_header: type(5) };

const EXPORT_TYPES: Readonly<Record<string, FunctionType>> = {
  handle_request: type(0, "i64"),
  handle_response: type(2),
};

/** Exports that are called before the first request, if they are there. */
const START_TYPES: readonly string[] = ["_initialize", "_start"];

/** Checks imports and exports of a guest. Throws `unsupported-module` with the offset of the first that is wrong. */
export function checkHandler(outline: ModuleOutline): void {
  for (const { from, name, type: found, at } of outline.imports) {
    if (from === WASI_MODULE && WASI_FUNCTIONS.has(name)) continue;
    const known = from === HANDLER_MODULE ? HANDLER_TYPES[name] : undefined;
    if (known === undefined || !Object.hasOwn(HANDLER_TYPES, name))
      throw unsupported(`The import at byte ${at}, ${quoteImport(from, name)}, is unknown.`);
    const printed = PRINTED_TYPES[name];
    if (!isSameType(found, known) && (printed === undefined || !isSameType(found, printed)))
      throw unsupported(
        `The import at byte ${at}, ${quoteImport(from, name)}, has the type ${describeType(found)} instead of ${describeType(known)}.`,
      );
  }
  if (!outline.exports.some(({ name, kind }) => name === "memory" && kind === MEMORY_KIND))
    throw unsupported("The module exports no memory named `memory`.");
  const exported = listExportedFunctions(outline);
  for (const [name, known] of Object.entries(EXPORT_TYPES)) {
    const found = exported.get(name);
    if (found === undefined) throw unsupported(`The module exports no function \`${name}\`.`);
    if (!isSameType(found, known))
      throw unsupported(
        `The export \`${name}\` has the type ${describeType(found)} instead of ${describeType(known)}.`,
      );
  }
  for (const name of START_TYPES) {
    const found = exported.get(name);
    if (found !== undefined && !isSameType(found, type(0)))
      throw unsupported(
        `The export \`${name}\` has the type ${describeType(found)} instead of () -> ().`,
      );
  }
}

function type(parameters: number, ...results: string[]): FunctionType {
  return { parameters: Array.from({ length: parameters }, () => "i32"), results };
}

function isSameType(a: FunctionType, b: FunctionType): boolean {
  return describeType(a) === describeType(b);
}

function unsupported(message: string): GuestError {
  return new GuestError("unsupported-module", message);
}
