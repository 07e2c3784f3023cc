// The parsers seen as what they found: for code that reads heads and must not drive the parser.
import type { RequestParser } from "./request-parser.ts";
import type { ResponseParser } from "./response-parser.ts";

/** A complete request head. Valid until its parser is reset or its chunk is reused. */
export type RequestHead = Readonly<Omit<RequestParser, "execute" | "reset" | "next">>;

/** A complete response head. Valid until its parser is reset or its chunk is reused. */
export type ResponseHead = Readonly<Omit<ResponseParser, "execute" | "reset" | "expect" | "next">>;
