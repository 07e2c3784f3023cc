// A dialog for one name.
import { useState } from "preact/hooks";
import { TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { t } from "../words/words.ts";

export function NameDialog(props: {
  title: string;
  onClose: () => void;
  onSubmit: (name: string) => Promise<void>;
}) {
  const [name, setName] = useState("");
  return (
    <FormDialog
      title={props.title}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={() => props.onSubmit(name)}
    >
      <TextField label={t("Name")} name="name" value={name} onInput={setName} isMono required />
    </FormDialog>
  );
}
