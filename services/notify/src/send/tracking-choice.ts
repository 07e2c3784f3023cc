// Decides whether a message is tracked.
import { PlatformError } from "@platform/kernel/errors";
import { createValidationError } from "@platform/kernel/http";
import type { Tracking, TrackingChoice } from "../tracking/tracking.ts";
import type { Draft } from "./draft.ts";
import type { SendRequest } from "./request.ts";

/**
 * Returns what is tracked: what the request asks for, otherwise the default of its stream where that is possible. Throws if
 * the request asks for something impossible; `path` is the place of the request in the body.
 */
export function chooseTracking(
  request: SendRequest,
  draft: Draft,
  tracking: Tracking,
  path: string,
): TrackingChoice {
  const { track_opens: opens, track_clicks: clicks } = request;
  const fault = findFault(request, draft);
  const asked = opens === true ? "track_opens" : clicks === true ? "track_clicks" : undefined;
  if (asked !== undefined && fault !== undefined) {
    throw createValidationError([{ in: "body", path: `${path}${asked}`, message: fault }]);
  }
  if (asked !== undefined && !tracking.isAvailable) {
    throw new PlatformError("unprocessable", `${path}${asked}: requires public_url.`);
  }
  if (fault !== undefined || !tracking.isAvailable) return { opens: false, clicks: false };
  const standard = tracking.choiceOf(request.stream);
  return { opens: opens ?? standard.opens, clicks: clicks ?? standard.clicks };
}

// All recipients of a message share its HTML, so that its links cannot tell them apart.
function findFault({ sensitive }: SendRequest, draft: Draft): string | undefined {
  if (draft.to.length + draft.cc.length + draft.bcc.length > 1) return "requires one recipient";
  if (draft.html === undefined) return "requires html";
  return sensitive ? "not allowed for sensitive messages, whose links are secrets" : undefined;
}
