// The state of a remote in words.
import type { Answer } from "../contract/answer.ts";
import type { StateKind } from "../view/state.tsx";
import { t } from "../words/words.ts";

type RemoteState = Answer<"vault", "GET //admin/remotes">["items"][number]["state"];

/** Shape and colour of each. */
export const REMOTE_STATES: Readonly<Record<RemoteState, StateKind>> = {
  up: "ok",
  unknown: "off",
  failing: "bad",
};

/** The state in the language of the page. */
export function describeRemoteState(state: RemoteState): string {
  const words: Record<RemoteState, string> = {
    up: t("reachable"),
    unknown: t("not used yet"),
    failing: t("failing"),
  };
  return words[state];
}
