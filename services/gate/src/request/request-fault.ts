// Reasons why the gateway refuses a request with 400.
import type { PathFault } from "../exchange/path-scan.ts";

/** Reason why a request is refused with 400. */
export type RequestFault = PathFault | "path-parameter-hides-route" | "prefix-not-literal";

/** The detail of the problem document. */
export function describeFault(fault: RequestFault): string {
  switch (fault) {
    case "not-origin-form":
      return "The request target is not a path.";
    case "bad-percent-encoding":
      return "The path contains a percent sign that is not followed by two hexadecimal digits.";
    case "encoded-nul":
      return "The path contains an encoded NUL.";
    case "encoded-separator":
      return "The path contains an encoded slash or backslash (%2F, %5C), which only routes with raw_path forward.";
    case "backslash":
      return "The path contains a backslash.";
    case "bad-character":
      return "The path contains a character that must be percent-encoded.";
    case "climbs-above-root":
      return "The path climbs above its root.";
    case "prefix-not-literal":
      return "The path must begin with the prefix of the route as it is written (raw_path).";
    case "path-parameter-hides-route":
      return "Without its parameters (;) the path matches another route.";
    case "path-parameter-on-dot-segment":
      return "The path contains a dot segment with a parameter.";
    default:
      return fault satisfies never;
  }
}
