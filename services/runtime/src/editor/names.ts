// Names that a rename may choose.
import { ERROR_CODES, ResponseError } from "./protocol.ts";

const IDENTIFIER = /^#?[\p{ID_Start}$_][\p{ID_Continue}$\u200c\u200d]*$/u;
/** Reserved in modules (https://tc39.es/ecma262/#prod-ReservedWord). */
const RESERVED = new Set(
  `await break case catch class const continue debugger default delete do else enum export extends false finally for
  function if import in instanceof new null return super switch this throw true try typeof var void while with yield let
  static implements interface package private protected public eval arguments`.split(/\s+/),
);

/** Returns the name. Throws a ResponseError if it cannot be the name of a variable. */
export function checkName(name: string): string {
  if (RESERVED.has(name)) {
    throw new ResponseError(ERROR_CODES.requestFailed, `${name} is a reserved word`);
  }
  if (!IDENTIFIER.test(name)) {
    const message = `expected a name of letters, digits, _ and $, found ${JSON.stringify(name)}`;
    throw new ResponseError(ERROR_CODES.requestFailed, message);
  }
  return name;
}
