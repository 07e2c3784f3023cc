// Share links of a tunnel: who can open it without other credentials, and until when.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatMoment } from "../format/format.ts";
import { href } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { ShareDialog } from "./tunnels.tsx";

type Share = Answer<"tunnel", "GET /tunnels/{id}/shares">["shares"][number];

export function SharesPage({ id }: { id: string }) {
  useCrumbs([
    { label: t("Tunnels"), to: "/tunnels" },
    { label: id, isName: true, to: `/tunnels/${encodeURIComponent(id)}/requests` },
    { label: t("Share links") },
  ]);
  const [isSharing, setSharing] = useState(false);
  const [revoked, setRevoked] = useState<Share | undefined>(undefined);
  const path = `/tunnels/${segment(id)}`;
  const loaded = useLoad(
    id,
    async () =>
      (await callService<Answer<"tunnel", "GET /tunnels/{id}/shares">>("tunnel", `${path}/shares`))
        .shares,
  );
  return (
    <Split>
      <Title
        actions={
          <>
            <a class="btn sm" href={href(`/tunnels/${encodeURIComponent(id)}/requests`)}>
              {t("Requests")}
            </a>
            <Action onClick={() => setSharing(true)}>{t("Share…")}</Action>
          </>
        }
      >
        {t("Share links")}
      </Title>
      <Loading of={loaded}>
        {(shares) =>
          shares.length === 0 ? (
            <Empty title={t("No share links")} />
          ) : (
            <Table
              label={t("Share links")}
              rows={shares}
              isTall
              idOf={(share) => share.id}
              columns={[
                {
                  title: t("Valid until"),
                  render: (share) => (
                    <span class="two">
                      <b class="mono">{formatMoment(share.expires_at)}</b>
                      <small>
                        <ShareState share={share} />
                      </small>
                    </span>
                  ),
                },
                {
                  title: t("Created"),
                  kind: "mono wide-only",
                  render: (share) => <span class="i3">{formatMoment(share.created_at)}</span>,
                },
                {
                  title: t("Actions"),
                  kind: "w-m num",
                  render: (share) =>
                    share.status !== "revoked" && (
                      <Action onClick={() => setRevoked(share)} kind="bad">
                        {t("Revoke…")}
                      </Action>
                    ),
                },
              ]}
            />
          )
        }
      </Loading>
      {isSharing && (
        <ShareDialog
          tunnel={{ id }}
          onClose={() => {
            setSharing(false);
            void loaded.reload();
          }}
        />
      )}
      {revoked !== undefined && (
        <FormDialog
          title={t("Revoke the share link")}
          submit={t("Revoke")}
          isDestructive
          onClose={() => setRevoked(undefined)}
          onSubmit={async () => {
            await callService("tunnel", `${path}/shares/${segment(revoked.id)}`, {
              method: "DELETE",
            });
            await loaded.reload();
          }}
        >
          <p>{t("Browsers that have opened it lose access at once. This cannot be undone.")}</p>
        </FormDialog>
      )}
    </Split>
  );
}

function ShareState({ share }: { share: Share }) {
  if (share.status === "revoked") return <State kind="off">{t("Revoked")}</State>;
  if (share.status === "used") return <State kind="off">{t("Used")}</State>;
  return <State kind="ok">{share.one_time ? t("For one browser only") : t("Active")}</State>;
}
