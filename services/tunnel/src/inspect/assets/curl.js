// Formats a captured request as a curl command.

/** @typedef {import("./relay.js").Detail} Detail */

/** Fields that curl or the relay set themselves. */
const SKIPPED =
  /^(?:host|content-length|transfer-encoding|connection|forwarded|x-forwarded-.*|x-request-id|traceparent|tracestate|te|accept-encoding)$/i;

/** @param {Detail} detail @param {string} origin public URL of the tunnel @returns {string} */
export function formatCurl({ method, path, request }, origin) {
  const url = origin + path;
  const words = ["curl"];
  const body = request?.body;
  const hasBody = body !== undefined && body.bytes > 0;
  if (method === "HEAD") words.push("--head");
  else if (method !== (hasBody ? "POST" : "GET")) words.push("--request", quote(method));
  // Brackets and braces are patterns to curl.
  if (/[[\]{}]/.test(url)) words.push("--globoff");
  words.push(quote(url));
  for (const [name, value] of request?.headers ?? []) {
    if (SKIPPED.test(name)) continue;
    words.push("--header", quote(value === "" ? `${name};` : `${name}: ${value}`));
  }
  if (hasBody) {
    if (body.encoding === "utf8") words.push("--data-raw", quote(body.text));
    else words.push("--data-binary", "@body");
  }
  return words.join(" ");
}

/** Quotes a word for POSIX shells. @param {string} word */
function quote(word) {
  return /^[\w./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}
