// All tunnels, and share links.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatAgo, formatMoment } from "../format/format.ts";
import { href, navigate } from "../router/router.ts";
import { nameShareCommand, useListeners } from "../session/listeners.ts";
import { callService, may } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, SelectField } from "../view/controls.tsx";
import { CopyButton } from "../view/copy.tsx";
import { ConfirmDialog, FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { SecretDialog } from "../view/secret.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";

const EVERY_MS = 2_000;
/** Permission to open tunnels. */
const OPEN = "tunnel:open";

/** A tunnel. */
export type Tunnel = Answer<"tunnel", "GET /tunnels">["tunnels"][number];

export function TunnelsPage() {
  useCrumbs([{ label: t("Tunnels") }]);
  const [deleted, setDeleted] = useState<Tunnel | undefined>(undefined);
  const [shared, setShared] = useState<Tunnel | undefined>(undefined);
  useListeners();
  const loaded = useLoad(
    "tunnels",
    async () => (await callService<Answer<"tunnel", "GET /tunnels">>("tunnel", "/tunnels")).tunnels,
    EVERY_MS,
  );
  return (
    <Split>
      <Title>{t("Tunnels")}</Title>
      <Loading of={loaded}>
        {(tunnels) =>
          tunnels.length === 0 && !may(OPEN) ? (
            <Empty title={t("Not permitted")}>
              <p>
                {t("No tunnel belongs to this account, and it requires the permission {name}.", {
                  name: OPEN,
                })}
              </p>
            </Empty>
          ) : tunnels.length === 0 ? (
            <Empty title={t("No tunnels yet")}>
              <p>{t("A tunnel gives a local port a public address.")}</p>
              <div class="cmd">
                <i aria-hidden="true">$</i>
                <code>{nameShareCommand()}</code>
                <CopyButton text={nameShareCommand()} />
              </div>
            </Empty>
          ) : (
            <Table
              label={t("Tunnels")}
              rows={tunnels}
              isTall
              idOf={({ id }) => id}
              onSelect={({ id }) => navigate(`/tunnels/${encodeURIComponent(id)}/requests`)}
              columns={[
                {
                  title: t("Address"),
                  render: ({ id, url, target }) => (
                    <span class="two">
                      <a class="mono" href={href(`/tunnels/${encodeURIComponent(id)}/requests`)}>
                        {url}
                      </a>
                      <small class="mono">{target === "" ? "–" : target}</small>
                    </span>
                  ),
                },
                {
                  title: t("Of"),
                  kind: "w-l mono wide-only",
                  render: ({ subject }) => <span class="i2">{subject}</span>,
                },
                {
                  title: t("State"),
                  kind: "w-m",
                  render: ({ connected, last_seen_at: at }) =>
                    connected ? (
                      <State kind="ok">{t("Connected")}</State>
                    ) : (
                      <State kind="off">{t("{time} ago", { time: formatAgo(at) })}</State>
                    ),
                },
                {
                  title: t("Actions"),
                  kind: "w-l num wide-only",
                  render: (tunnel) => (
                    <span class="acts">
                      <Action onClick={() => setShared(tunnel)}>{t("Share…")}</Action>
                      <Action onClick={() => setDeleted(tunnel)} kind="bad">
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
      {shared !== undefined && <ShareDialog tunnel={shared} onClose={() => setShared(undefined)} />}
      {deleted !== undefined && (
        <ConfirmDialog
          title={t("Delete {name}", { name: deleted.id })}
          name={deleted.id}
          submit={t("Delete")}
          onClose={() => setDeleted(undefined)}
          onSubmit={async () => {
            await callService("tunnel", `/tunnels/${segment(deleted.id)}`, { method: "DELETE" });
            await loaded.reload();
          }}
        >
          <p>
            {t("Its client is disconnected; its captured requests and share links will be gone.")}
          </p>
        </ConfirmDialog>
      )}
    </Split>
  );
}

/** Creates a link that opens a tunnel without other credentials. */
export function ShareDialog({
  tunnel,
  onClose,
}: {
  tunnel: Pick<Tunnel, "id">;
  onClose: () => void;
}) {
  const [expiresIn, setExpiresIn] = useState("24h");
  const [link, setLink] = useState<{ url: string; expires_at: string } | undefined>(undefined);
  const [isOnce, setOnce] = useState(false);
  if (link !== undefined) {
    const note = t("Valid until {time}. It is shown once.", {
      time: formatMoment(link.expires_at),
    });
    const title = t("Share link");
    return <SecretDialog title={title} values={[link.url]} note={note} onClose={onClose} />;
  }
  return (
    <FormDialog
      title={t("Share…")}
      submit={t("Create")}
      createsSecret
      onClose={onClose}
      onSubmit={async () => {
        const json = { expires_in: expiresIn, one_time: isOnce };
        const path = `/tunnels/${segment(tunnel.id)}/share`;
        setLink(await callService("tunnel", path, { method: "POST", json }));
        return STAY_OPEN;
      }}
    >
      <SelectField
        label={t("Valid for")}
        value={expiresIn}
        options={[
          ["1h", t("1 hour")],
          ["24h", t("1 day")],
          ["168h", t("1 week")],
        ]}
        onChange={setExpiresIn}
      />
      <label class="check-line">
        <input type="checkbox" checked={isOnce} onChange={() => setOnce(!isOnce)} />
        <span>{t("For one browser only")}</span>
      </label>
    </FormDialog>
  );
}
