// Access keys of storage and their users.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { NameDialog } from "./name-dialog.tsx";
import { NewStorageKey } from "./new-key.tsx";
import { ADMINISTER } from "./permission.ts";

type AccessKey = Answer<"vault", "GET /keys">["keys"][number];

export function KeysPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Users and keys") }]);
  const [open, setOpen] = useState<"user" | "key" | undefined>(undefined);
  const [deleted, setDeleted] = useState<string | undefined>(undefined);
  const keys = useLoad(
    "keys",
    async () => (await callService<Answer<"vault", "GET /keys">>("vault", "/keys")).keys,
  );
  const newKey = (): void => setOpen("key");
  const newUser = (): void => setOpen("user");
  useCommands([
    { label: t("New S3 key"), key: "n", icon: "plus", needs: ADMINISTER, run: newKey },
    { label: t("New storage user"), icon: "plus", needs: ADMINISTER, run: newUser },
  ]);
  const toggle = ({ access_key: id, enabled }: AccessKey): void => {
    void attempt(async () => {
      const json = { enabled: !enabled };
      await callService("vault", `/keys/${segment(id)}`, { method: "PATCH", json });
      await keys.reload();
    });
  };
  return (
    <Split>
      <Title
        actions={
          <>
            <Action onClick={newUser} needs={ADMINISTER}>
              {t("New user")}
            </Action>
            <Action onClick={newKey} needs={ADMINISTER} kind="primary" icon="plus">
              {t("New key")}
            </Action>
          </>
        }
      >
        {t("Users and keys")}
      </Title>
      <Loading of={keys}>
        {(list) =>
          list.length === 0 ? (
            <Empty title={t("No keys yet")}>
              <p>
                {t("The root key is in the configuration; programs get keys of their own here.")}
              </p>
            </Empty>
          ) : (
            <Table
              label={t("Users and keys")}
              rows={list}
              idOf={(key) => key.access_key}
              columns={[
                { title: t("Access key"), kind: "mono", render: (key) => key.access_key },
                { title: t("User"), kind: "w-m mono", render: (key) => key.user },
                {
                  title: t("State"),
                  kind: "w-s wide-only",
                  render: (key) => (
                    <State kind={key.enabled ? "ok" : "off"}>
                      {key.enabled ? t("Active") : t("Disabled")}
                    </State>
                  ),
                },
                {
                  title: t("Actions"),
                  kind: "w-l num",
                  render: (key) => (
                    <span class="acts">
                      <Action onClick={() => toggle(key)}>
                        {key.enabled ? t("Disable") : t("Enable")}
                      </Action>
                      <Action onClick={() => setDeleted(key.access_key)} kind="bad">
                        {t("Delete…")}
                      </Action>
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Loading>
      {open === "user" && (
        <NameDialog
          title={t("New storage user")}
          onClose={() => setOpen(undefined)}
          onSubmit={async (name) => {
            await callService("vault", `/users/${segment(name)}`, { method: "PUT", json: {} });
          }}
        />
      )}
      {open === "key" && (
        <NewStorageKey onClose={() => setOpen(undefined)} onCreated={() => void keys.reload()} />
      )}
      {deleted !== undefined && (
        <ConfirmDialog
          title={t("Delete {name}", { name: deleted })}
          name={deleted}
          submit={t("Delete")}
          onClose={() => setDeleted(undefined)}
          onSubmit={async () => {
            await callService("vault", `/keys/${segment(deleted)}`, { method: "DELETE" });
            await keys.reload();
          }}
        >
          <p>{t("Programs that use it are refused immediately.")}</p>
        </ConfirmDialog>
      )}
    </Split>
  );
}
