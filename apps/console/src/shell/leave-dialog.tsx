// The question before unsaved text is left.
import { pendingLeave } from "../router/unsaved.ts";
import { Dialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";

/** The question, while a page is to be left. */
export function LeaveDialog() {
  const leave = pendingLeave.value;
  if (leave === undefined) return null;
  const stay = (): void => {
    pendingLeave.value = undefined;
  };
  return (
    <Dialog title={t("Leave without saving?")} onClose={stay}>
      <div class="dialog-body">
        <p>{t("Text that is not saved is lost, and so are secrets that are shown once.")}</p>
      </div>
      <footer class="dialog-foot">
        <button type="button" class="btn" onClick={stay}>
          {t("Stay")}
        </button>
        <button type="button" class="btn bad-solid" onClick={leave}>
          {t("Leave")}
        </button>
      </footer>
    </Dialog>
  );
}
