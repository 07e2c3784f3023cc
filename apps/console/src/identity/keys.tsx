// Signing keys and their age.
import type { Answer } from "../contract/answer.ts";
import { formatMoment } from "../format/format.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";

/** Signing keys and their age. */
export function KeysPage() {
  useCrumbs([{ label: t("Identity") }, { label: t("Keys") }]);
  const loaded = useLoad(
    "keys",
    async () => (await callService<Answer<"auth", "GET /auth/keys">>("auth", "/auth/keys")).keys,
  );
  const rotate = (): void => {
    const json = { mode: "scheduled" };
    void attempt(async () => {
      await callService("auth", "/auth/keys/rotate", { method: "POST", json });
      await loaded.reload();
    }, t("A new key was created; it becomes active as scheduled."));
  };
  return (
    <Split>
      <Title
        actions={
          <Action onClick={rotate} needs="keys:write" icon="again">
            {t("Rotate")}
          </Action>
        }
      >
        {t("Signing keys")}
      </Title>
      <Loading of={loaded}>
        {(keys) =>
          keys.length === 0 ? (
            <Empty title={t("No keys")} />
          ) : (
            <Table
              label={t("Signing keys")}
              rows={keys}
              idOf={({ kid }) => kid}
              columns={[
                { title: "kid", kind: "mono", render: ({ kid }) => kid },
                { title: t("Algorithm"), kind: "w-s mono", render: ({ algorithm }) => algorithm },
                {
                  title: t("Active from"),
                  kind: "w-l wide-only",
                  render: ({ activates_at: at }) => formatMoment(at),
                },
                {
                  title: t("State"),
                  kind: "w-m",
                  render: ({ state }) => (
                    <State kind={state === "active" ? "ok" : state === "revoked" ? "bad" : "off"}>
                      {state}
                    </State>
                  ),
                },
              ]}
            />
          )
        }
      </Loading>
    </Split>
  );
}
