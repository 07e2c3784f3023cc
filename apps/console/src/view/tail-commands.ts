// Commands of pages with a tail: hold it, and follow the newest.
import type { RefObject } from "preact";
import { useCommands } from "../stage/stage.ts";
import { t } from "../words/words.ts";
import type { TailView } from "./tail-view.ts";

/** Adds the commands, and returns the one that holds the tail or lets it continue. */
export function useTailCommands<Row>(
  view: RefObject<TailView<Row> | undefined>,
  isHeld: boolean,
): () => void {
  const toggle = (): void => {
    if (view.current?.isFollowing === true) view.current.hold();
    else view.current?.follow();
  };
  useCommands([
    { label: isHeld ? t("Continue") : t("Hold"), key: "space", icon: "pause", run: toggle },
    { label: t("Follow the newest"), key: "end", icon: "down", run: () => view.current?.follow() },
  ]);
  return toggle;
}
