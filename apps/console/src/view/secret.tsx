// Secrets that are shown once.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { useUnsaved } from "../router/unsaved.ts";
import { t } from "../words/words.ts";
import { CopyButton } from "./copy.tsx";
import { Dialog } from "./dialog.tsx";

/** A dialog with something that cannot be read again; asks before it is lost. */
export function OnceDialog(props: {
  title: string;
  isWide?: boolean;
  /** True once it was copied or saved. */
  isKept: boolean;
  onKept: () => void;
  onClose: () => void;
  children: ComponentChildren;
}) {
  const { title, isKept, onKept, onClose } = props;
  const [isAsking, setAsking] = useState(false);
  useUnsaved(!isKept);
  return (
    <Dialog
      title={title}
      isWide={props.isWide ?? false}
      onClose={isKept ? onClose : () => setAsking(true)}
    >
      {/* Selected and copied by hand. */}
      <div class="dialog-body" onCopy={onKept}>
        {props.children}
        {isAsking && !isKept && (
          <p class="banner" role="alert">
            {t("It was not copied, and cannot be shown again.")}
          </p>
        )}
      </div>
      <footer class="dialog-foot">
        {isAsking && !isKept ? (
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
  const secret = values.at(-1);
  return (
    <OnceDialog title={title} isKept={isCopied} onKept={() => setCopied(true)} onClose={onClose}>
      <p>{note ?? t("The secret is shown once.")}</p>
      {values.map((value) => (
        <div key={value} class="cmd">
          <code tabIndex={0}>{value}</code>
          <CopyButton text={value} onCopied={() => setCopied(isCopied || value === secret)} />
        </div>
      ))}
    </OnceDialog>
  );
}
