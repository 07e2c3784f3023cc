// The head of a request that a program sends for itself.

const TOKEN = /^[\w!#$%&'*+.^`|~-]+$/;
/** Visible characters of ISO 8859-1, spaces and tabs (RFC 9110 section 5.5). */
const VALUE = /^[\t\x20-\x7e\x80-\xff]*$/;
const TARGET = /^[\x21-\x7e]+$/;

/** Throws a TypeError for what would not be one head. */
export function composeRequest(
  method: string,
  target: string,
  headers: Readonly<Record<string, string>>,
): Buffer {
  if (!TOKEN.test(method)) throw new TypeError("the method is no token");
  if (!TARGET.test(target)) throw new TypeError("the target has characters that must be encoded");
  let text = `${method} ${target} HTTP/1.1\r\n`;
  for (const name in headers) {
    const value = headers[name]!;
    if (!TOKEN.test(name)) throw new TypeError("the name of a field is no token");
    if (!VALUE.test(value)) throw new TypeError(`the value of ${name} has characters of control`);
    text += `${name}: ${value}\r\n`;
  }
  return Buffer.from(`${text}\r\n`, "latin1");
}
