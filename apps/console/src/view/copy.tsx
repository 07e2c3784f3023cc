// Copying of text.
import { useState } from "preact/hooks";
import { t } from "../words/words.ts";
import { Icon } from "./icon.tsx";

const SHOWN_MS = 1500;

/** A button that copies a text. */
export function CopyButton(props: { text: string; label?: string; onCopied?: () => void }) {
  const { text, label } = props;
  const [isCopied, setCopied] = useState(false);
  const copy = (): void => {
    void navigator.clipboard?.writeText(text).then(() => {
      setCopied(true);
      props.onCopied?.();
      setTimeout(() => setCopied(false), SHOWN_MS);
      return undefined;
    });
  };
  return (
    <button
      type="button"
      class="icon-btn"
      aria-label={isCopied ? t("Copied") : (label ?? t("Copy"))}
      title={isCopied ? t("Copied") : (label ?? t("Copy"))}
      onClick={copy}
    >
      {isCopied ? <span class="copied">✓</span> : <Icon name="copy" size={13} />}
    </button>
  );
}
