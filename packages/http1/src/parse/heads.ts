// Read-only views of the parsers for code that reads heads.
import type { RequestParser } from "./request-parser.ts";
import type { ResponseParser } from "./response-parser.ts";

/** A complete request head. Valid until its parser is reset or its chunk is reused. */
export type RequestHead = Readonly<Omit<RequestParser, "execute" | "reset" | "next">>;

/** A complete response head. Valid until its parser is reset or its chunk is reused. */
export type ResponseHead = Readonly<Omit<ResponseParser, "execute" | "reset" | "expect" | "next">>;
