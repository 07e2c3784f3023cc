// The notice after a change was refused because somebody else had changed the same text.
import { t } from "../words/words.ts";
import { Action } from "./controls.tsx";

/** Keeps the text, and lets it be compared with the other one; `onCompare` reads that. */
export function ConflictNotice({ onCompare }: { onCompare: () => void }) {
  return (
    <div class="bar" role="alert">
      <span>{t("Somebody else changed it. Your text stays; compare it before saving.")}</span>
      <Action onClick={onCompare}>{t("Compare with the new one")}</Action>
    </div>
  );
}
