// A new folder: a prefix that exists with its first object.
import { useState } from "preact/hooks";
import { TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";

export function FolderDialog(props: { onClose: () => void; onSubmit: (name: string) => void }) {
  const [name, setName] = useState("");
  const isWrong = name === "." || name === ".." || name.includes("/");
  return (
    <FormDialog
      title={t("New folder")}
      submit={t("Open")}
      isDisabled={name === "" || isWrong}
      onClose={props.onClose}
      onSubmit={() => Promise.resolve(props.onSubmit(name))}
    >
      <TextField
        label={t("Name")}
        value={name}
        onInput={setName}
        isMono
        hint={t("Folders are beginnings of keys: this one appears with its first object.")}
        error={isWrong ? t("Without / and not . or ..") : undefined}
      />
    </FormDialog>
  );
}
