// A new access key of a user of storage.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { ApiFailure, segment } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { TextField } from "../view/controls.tsx";
import { FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { SecretDialog } from "../view/secret.tsx";
import { t } from "../words/words.ts";

type CreatedKey = Answer<"vault", "POST /keys">;

/** Creates a key, and the user if it does not exist; shows the secret once. */
export function NewStorageKey(props: { onClose: () => void; onCreated?: () => void }) {
  const [user, setUser] = useState("");
  const [created, setCreated] = useState<CreatedKey | undefined>(undefined);
  if (created !== undefined) {
    const values = [created.access_key, created.secret_key];
    return <SecretDialog title={t("New key")} values={values} onClose={props.onClose} />;
  }
  return (
    <FormDialog
      title={t("New S3 key")}
      submit={t("Create")}
      createsSecret
      onClose={props.onClose}
      onSubmit={async () => {
        await ensureUser(user);
        const json = { user };
        setCreated(await callService("vault", "/keys", { method: "POST", json }));
        props.onCreated?.();
        return STAY_OPEN;
      }}
    >
      <TextField
        label={t("User")}
        value={user}
        onInput={setUser}
        isMono
        required
        hint={t("A new user has no policies: it can do nothing yet.")}
      />
    </FormDialog>
  );
}

// PUT replaces a user with its policies: an existing one must stay as it is.
async function ensureUser(name: string): Promise<void> {
  const path = `/users/${segment(name)}`;
  try {
    await callService("vault", path);
  } catch (error) {
    if (!(error instanceof ApiFailure) || error.status !== 404) throw error;
    await callService("vault", path, { method: "PUT", json: {} });
  }
}
