// Puts a banner, the text of `middleware_config`, before the end of the body of HTML pages.
import { BUFFER_RESPONSE, RESPONSE, config, enable, field, reset, writeText } from "./handler";
import { readBody } from "./body";

export function handle_request(): u64 {
  reset();
  enable(BUFFER_RESPONSE);
  return 1;
}

export function handle_response(context: u32, isError: u32): void {
  reset();
  if (isError != 0 || !field(RESPONSE, "content-type").startsWith("text/html")) return;
  // The bytes of a coded body are not text.
  if (field(RESPONSE, "content-encoding") != "") return;
  const body = readBody(RESPONSE);
  const page = String.UTF8.decodeUnsafe(body.dataStart, body.length);
  const end = page.lastIndexOf("</body>");
  if (end == -1) return;
  writeText(RESPONSE, page.slice(0, end) + '<div class="banner">' + config() + "</div>" + page.slice(end));
}
