// Secrets that are shown once.
import { useState } from "preact/hooks";
import { useUnsaved } from "../router/unsaved.ts";
import { t } from "../words/words.ts";
import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

/** Shows a secret that cannot be read again, after the names that belong to it; asks before it is lost without a copy. */
export function SecretDialog(props: {
  title: string;
  /** The last one is the secret. */
  values: readonly string[];
  onClose: () => void;
  /** Default: that the secret is shown once. */
  note?: string;
}) {
  const { title, values, onClose, note } = props;
  const [isCopied, setCopied] = useState(false);
  const [isAsking, setAsking] = useState(false);
  const secret = values.at(-1);
  useUnsaved(!isCopied);
  return (
    <Dialog title={title} onClose={isCopied ? onClose : () => setAsking(true)}>
      {/* Selected and copied by hand. */}
      <div class="dialog-body" onCopy={() => setCopied(true)}>
        <p>{note ?? t("The secret is shown once.")}</p>
        {values.map((value) => (
          <div key={value} class="cmd">
            <code tabIndex={0}>{value}</code>
            <CopyButton text={value} onCopied={() => setCopied(isCopied || value === secret)} />
          </div>
        ))}
        {isAsking && !isCopied && (
          <p class="banner" role="alert">
            {t("It was not copied, and cannot be shown again.")}
          </p>
        )}
      </div>
      <footer class="dialog-foot">
        {isAsking && !isCopied ? (
          <>
            <button type="button" class="btn" onClick={() => setAsking(false)}>
              {t("Keep open")}
            </button>
            <button type="button" class="btn bad-solid" onClick={onClose}>
              {t("Close without copying")}
            </button>
          </>
        ) : (
          <button type="button" class="btn pri" onClick={onClose}>
            {t("I have kept it")}
          </button>
        )}
      </footer>
    </Dialog>
  );
}
