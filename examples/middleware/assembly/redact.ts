// Replaces digits in runs of 12 to 19, as card numbers have, in text and JSON responses.
import { BUFFER_RESPONSE, RESPONSE, enable, field, reset, writeBytes } from "./handler";
import { readBody } from "./body";

export function handle_request(): u64 {
  reset();
  enable(BUFFER_RESPONSE);
  return 1;
}

export function handle_response(context: u32, isError: u32): void {
  reset();
  const type = field(RESPONSE, "content-type");
  if (!type.startsWith("text/") && !type.startsWith("application/json")) return;
  if (field(RESPONSE, "content-encoding") != "") return;
  const body = readBody(RESPONSE);
  let isChanged = false;
  for (let at = 0; at < body.length; ) {
    let end = at;
    while (end < body.length && body[end] >= 48 && body[end] <= 57) end++;
    if (end - at >= 12 && end - at <= 19) {
      for (let digit = at; digit < end; digit++) body[digit] = 42;
      isChanged = true;
    }
    at = end + 1;
  }
  if (isChanged) writeBytes(RESPONSE, body.dataStart, body.length);
}
