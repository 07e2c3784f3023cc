// The way to the next page of a list that is read by cursor.
import { setQuery } from "../router/router.ts";
import { t } from "../words/words.ts";
import { Action } from "./controls.tsx";

/** A button that puts the cursor into the address; nothing on the last page. */
export function NextPage({ cursor }: { cursor: string | null }) {
  if (cursor === null) return null;
  return (
    <div class="bar">
      <Action onClick={() => setQuery({ cursor })}>{t("Next page")}</Action>
    </div>
  );
}
