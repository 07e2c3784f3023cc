// The contents of ERROR frames.
import type { Frame, Header } from "../frame/frame.ts";
import type { StompError } from "../frame/stomp-error.ts";
import { STOMP_VERSIONS } from "../frame/version.ts";

const MESSAGE_CHARS_MAX = 300;
const COMMAND_CHARS_MAX = 40;

/** Headers and body of the ERROR frame for an error, of a frame if one caused it. */
export function describeError(
  error: StompError,
  frame: Frame | undefined,
): { headers: Header[]; body: Buffer } {
  const message = error.message.replace(/\p{Cc}/gu, " ");
  const receipt = frame?.headers.get("receipt");
  const cause = frame === undefined ? "" : `${frame.command.slice(0, COMMAND_CHARS_MAX)}: `;
  const body = Buffer.from(`${cause}${message}.\nThe connection is closed.\n`);
  const headers: Header[] = [
    ["message", message.slice(0, MESSAGE_CHARS_MAX)],
    ...(receipt === undefined ? [] : [["receipt-id", receipt] as const]),
    ...Object.entries(error.headers),
    ["content-type", "text/plain"],
    ["content-length", String(body.length)],
  ];
  if (error.kind === "unsupported-version") {
    headers.push(["version", STOMP_VERSIONS.toReversed().join(",")]);
  }
  return { headers, body };
}
