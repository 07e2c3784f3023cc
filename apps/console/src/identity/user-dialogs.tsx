// Dialogs of users: a new one, and the roles of one.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { onlyIf, readVersioned } from "../api/versioned.ts";
import { api, callService } from "../session/session.ts";
import { TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Loading } from "../view/problem.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";

interface RolesProps {
  /** Path of the roles of a user or a group. */
  path: string;
  onClose: () => void;
  onSaved: () => Promise<void>;
}

/** Chooses the roles of a user or a group. */
export function EditRoles(props: RolesProps) {
  const loaded = useLoad(props.path, (signal) =>
    readVersioned<Answer<"auth", "GET /rbac/users/{id}/roles">>(api("auth", props.path), signal),
  );
  return (
    <Loading of={loaded}>
      {({ document, etag }) => <RolesForm {...props} roles={document?.roles ?? []} etag={etag} />}
    </Loading>
  );
}

function RolesForm(props: RolesProps & { roles: readonly string[]; etag: string | undefined }) {
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set(props.roles));
  const all = useLoad(
    "roles",
    async () => (await callService<Answer<"auth", "GET /rbac/roles">>("auth", "/rbac/roles")).roles,
  );
  return (
    <FormDialog
      title={t("Roles")}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = { roles: [...chosen] };
        const headers = onlyIf(props.etag);
        await callService("auth", props.path, { method: "PUT", json, headers });
        await props.onSaved();
      }}
    >
      <Loading of={all}>
        {(list) =>
          list.map(({ name }) => (
            <label key={name} class="check-line">
              <input
                type="checkbox"
                checked={chosen.has(name)}
                onChange={() => {
                  const next = new Set(chosen);
                  if (!next.delete(name)) next.add(name);
                  setChosen(next);
                }}
              />
              <span class="mono">{name}</span>
            </label>
          ))
        }
      </Loading>
    </FormDialog>
  );
}

/** Creates a user. */
export function CreateUser(props: { onClose: () => void; onCreated: () => Promise<void> }) {
  const [username, setUsername] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  return (
    <FormDialog
      title={t("New user")}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = {
          username,
          ...(email === "" ? {} : { email }),
          ...(password === "" ? {} : { password }),
        };
        await callService("auth", "/users", { method: "POST", json });
        await props.onCreated();
        say(t("{name} was created.", { name: username }));
      }}
    >
      <TextField
        label={t("Username")}
        name="username"
        value={username}
        onInput={setUsername}
        required
      />
      <TextField label={t("Address")} name="email" value={email} onInput={setEmail} type="email" />
      <TextField
        label={t("Password")}
        name="password"
        value={password}
        onInput={setPassword}
        type="password"
        autocomplete="new-password"
        hint={t("Empty: the user sets one with a recovery link.")}
      />
    </FormDialog>
  );
}
