// Saves a statement under a name.
import { useState } from "preact/hooks";
import { callService } from "../session/session.ts";
import { TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import type { DatabaseName } from "./database-frame.tsx";
import { savedApi } from "./paths.ts";

export function SaveDialog(props: { name: DatabaseName; sql: string; onClose: () => void }) {
  const { name, sql, onClose } = props;
  const [label, setLabel] = useState("");
  return (
    <FormDialog
      title={t("Save the statement")}
      submit={t("Save")}
      isDisabled={label.trim() === ""}
      onClose={onClose}
      onSubmit={async () => {
        const path = savedApi(name.project, name.database, label.trim());
        await callService("runtime", path, { method: "PUT", json: { sql } });
        say(t("The statement was saved."));
      }}
    >
      <TextField label={t("Name")} value={label} required onInput={setLabel} />
    </FormDialog>
  );
}
