// A server's side of HTTP guests for tests, and guests from their text form.
import { assemble } from "../assemble.ts";
import {
  FieldList,
  type GuestEnvironment,
  type GuestMessages,
  HttpGuest,
  compileHttpModule,
} from "../../src/http/index.ts";

/** The imports of every function of the ABI, each under its own name. */
export const HANDLER_IMPORTS = [
  ["enable_features", "(param i32) (result i32)"],
  ["get_config", "(param i32 i32) (result i32)"],
  ["log", "(param i32 i32 i32)"],
  ["log_enabled", "(param i32) (result i32)"],
  ["get_method", "(param i32 i32) (result i32)"],
  ["set_method", "(param i32 i32)"],
  ["get_uri", "(param i32 i32) (result i32)"],
  ["set_uri", "(param i32 i32)"],
  ["get_protocol_version", "(param i32 i32) (result i32)"],
  ["get_source_addr", "(param i32 i32) (result i32)"],
  ["get_header_names", "(param i32 i32 i32) (result i64)"],
  ["get_header_values", "(param i32 i32 i32 i32 i32) (result i64)"],
  ["set_header_value", "(param i32 i32 i32 i32 i32)"],
  ["add_header_value", "(param i32 i32 i32 i32 i32)"],
  ["remove_header", "(param i32 i32 i32)"],
  ["write_body", "(param i32 i32 i32)"],
  ["get_status_code", "(result i32)"],
  ["set_status_code", "(param i32)"],
] as const;

const READ_BODY = `(import "http_handler" "read_body" (func $read_body (param i32 i32 i32) (result i64)))`;

/** Parts of a guest in the text format. */
export interface GuestText {
  /** Body of `handle_request`; it leaves an i64. Default: continue. */
  request?: string;
  /** Body of `handle_response` with `$context` and `$is_error`. */
  response?: string;
  /** Further definitions. */
  more?: string;
  /** Texts that are placed in memory at these addresses, with the escapes of the text format. */
  data?: Readonly<Record<number, string>>;
  readsBody?: boolean;
  memory?: string;
}

/** A guest that imports every function but `read_body`. */
export function writeGuest(text: GuestText = {}): string {
  const { request = "(i64.const 1)", response = "", more = "", data = {}, memory = "1" } = text;
  const imports = HANDLER_IMPORTS.map(
    ([name, type]) => `(import "http_handler" "${name}" (func $${name} ${type}))`,
  );
  const texts = Object.entries(data).map(
    ([at, content]) => `(data (i32.const ${at}) "${content}")`,
  );
  return `(module
    ${imports.join("\n")}
    ${text.readsBody === true ? READ_BODY : ""}
    (memory (export "memory") ${memory})
    ${texts.join("\n")}
    ${more}
    (func (export "handle_request") (result i64) ${request})
    (func (export "handle_response") (param $context i32) (param $is_error i32) ${response}))`;
}

/** A request with its response; a test reads back what the guest has changed. */
export class TestMessages implements GuestMessages {
  method = "GET";
  uri = "/items?page=2";
  protocolVersion = "HTTP/1.1";
  sourceAddress = "192.0.2.1:4711";
  status = 200;
  requestFields = new FieldList([
    ["Host", "example.test"],
    ["X-One", "a"],
    ["x-one", "b"],
  ]);
  responseFields = new FieldList([["Content-Type", "text/plain"]]);
  requestBody: Uint8Array | Promise<Uint8Array> = Buffer.from("request body");
  responseBody: Uint8Array = Buffer.from("response body");
  requestBodyBytesMax = 1_000;
  responseBodyBytesMax = 1_000;

  readRequestBody(): Uint8Array | Promise<Uint8Array> {
    return this.requestBody;
  }

  readResponseBody(): Uint8Array {
    return this.responseBody;
  }
}

/** An environment whose log is kept. */
export class TestEnvironment implements GuestEnvironment {
  config: Uint8Array = Buffer.from("enabled=1\n");
  fuelPerCall = 5_000_000;
  readonly lines: [level: number, text: string][] = [];

  log(level: number, text: string): void {
    this.lines.push([level, text]);
  }

  isLogged(level: number): boolean {
    return level >= -1 && level < 3;
  }
}

/** An instance of a guest. */
export function createGuest(
  text: string | Uint8Array,
  environment: GuestEnvironment = new TestEnvironment(),
): HttpGuest {
  const bytes = typeof text === "string" ? assemble(text) : text;
  return new HttpGuest(compileHttpModule(bytes), environment);
}
