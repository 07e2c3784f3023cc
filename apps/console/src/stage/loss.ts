// The loss that the page in view has to report: the console itself, or the service of its trace.
import { computed } from "@preact/signals";
import type { ServiceId } from "@platform/console/contract";
import { feeds, isDown, liveState } from "../live/live.ts";
import { trace } from "./stage.ts";

/** A loss and its beginning, epoch ms. */
export interface Loss {
  of: "console" | ServiceId;
  sinceMs: number;
}

/** The loss that the trace strip reports; undefined while everything answers. */
export const loss = computed<Loss | undefined>(() => {
  const scope = trace.value;
  if (scope === undefined) return undefined;
  const state = liveState.value;
  if (state.kind === "lost") return { of: "console", sinceMs: state.since };
  const feed = feeds.value.get(scope.service);
  if (feed === undefined || !isDown(feed) || feed.downSince === 0) return undefined;
  return { of: scope.service, sinceMs: feed.downSince };
});
