// Admits webhooks whose `X-Hub-Signature-256` is the HMAC-SHA256 of the body; the key is `middleware_config`.
import { REQUEST, RESPONSE, config, field, reset, setField, status, writeText } from "./handler";
import { readBody } from "./body";
import { hmac } from "./sha256";

export function handle_request(): u64 {
  reset();
  const key = config();
  const signature = field(REQUEST, "x-hub-signature-256");
  const wanted = hmac(Uint8Array.wrap(String.UTF8.encode(key)), readBody(REQUEST));
  // An empty key would admit everybody.
  if (key != "" && isEqual(signature, "sha256=" + wanted)) return 1;
  status(401);
  setField(RESPONSE, "Content-Type", "text/plain");
  writeText(RESPONSE, "The signature is missing or wrong.\n");
  return 0;
}

export function handle_response(context: u32, isError: u32): void {}

// Takes the same time wherever the texts differ.
function isEqual(a: string, b: string): bool {
  if (a.length != b.length) return false;
  let difference = 0;
  for (let at = 0; at < a.length; at++) difference |= a.charCodeAt(at) ^ b.charCodeAt(at);
  return difference == 0;
}
