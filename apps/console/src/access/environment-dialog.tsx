// The environment file of an application, which is shown once: to copy, or to save.
import { useEffect, useState } from "preact/hooks";
import { Segments } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { OnceDialog } from "../view/secret.tsx";
import { t } from "../words/words.ts";
import type { Answer } from "../contract/answer.ts";

type Language = Files[number]["language"];
/** The file with examples in each language. */
export type Files = Answer<"runtime", "POST /applications">["files"];

const LABELS: Readonly<Record<Language, string>> = {
  node: "Node",
  python: "Python",
  go: "Go",
  curl: "curl",
};
const ORDER: readonly Language[] = ["node", "python", "go", "curl"];

/** Shows the file; asks before it is lost. `note` is above it. */
export function EnvironmentDialog(props: {
  title: string;
  name: string;
  files: Files;
  note: string;
  onClose: () => void;
}) {
  const { title, name, files, note, onClose } = props;
  const [language, setLanguage] = useState<Language>("node");
  const [isKept, setKept] = useState(false);
  const text = files.find((file) => file.language === language)?.text ?? "";
  const address = useObjectUrl(text);
  const keep = (): void => setKept(true);
  // Without examples the file is the same in all languages.
  const isOne = files.every((file) => file.text === text);
  return (
    <OnceDialog title={title} isWide isKept={isKept} onKept={keep} onClose={onClose}>
      <p>{isOne ? note : `${note} ${t("The comments at the end of the file try them.")}`}</p>
      <div class="acts">
        {!isOne && (
          <Segments
            label={t("Examples in the file")}
            value={language}
            options={ORDER.map((one) => [one, LABELS[one]] as const)}
            onChange={setLanguage}
          />
        )}
        <a class="btn pri" href={address} download={`${name}.env`} onClick={keep}>
          {t("Download {name}", { name: `${name}.env` })}
        </a>
        <CopyButton text={text} onCopied={keep} />
      </div>
      <pre class="block environment" tabIndex={0}>
        {text}
      </pre>
    </OnceDialog>
  );
}

function useObjectUrl(text: string): string {
  const [address, setAddress] = useState("");
  useEffect(() => {
    const made = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [text]);
  return address;
}
