// Secrets that are shown once.
import { t } from "../words/words.ts";
import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

/** Shows values that cannot be read again, each with a button that copies it. */
export function SecretDialog(props: {
  title: string;
  values: readonly string[];
  onClose: () => void;
  /** Default: that the secret is shown once. */
  note?: string;
}) {
  return (
    <Dialog title={props.title} onClose={props.onClose}>
      <div class="dialog-body">
        <p>{props.note ?? t("The secret is shown once.")}</p>
        {props.values.map((value) => (
          <div key={value} class="cmd">
            <code tabIndex={0}>{value}</code>
            <CopyButton text={value} />
          </div>
        ))}
      </div>
    </Dialog>
  );
}
