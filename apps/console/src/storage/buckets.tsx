// All buckets with their use.
import { useState } from "preact/hooks";
import { formatBytes, formatNumber } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { describeS3Clients, useListeners } from "../session/listeners.ts";
import { callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { NameDialog } from "./name-dialog.tsx";
import { folderHref, listBuckets } from "./objects.ts";

const REFRESH_MS = 5_000;

export function BucketsPage() {
  useCrumbs([{ label: t("Storage") }, { label: t("Buckets") }]);
  const [isCreating, setCreating] = useState(false);
  const filter = queryValue("filter");
  useListeners();
  const loaded = useLoad("buckets", listBuckets, REFRESH_MS);
  useCommands([{ label: t("New bucket…"), key: "n", icon: "plus", run: () => setCreating(true) }]);
  return (
    <Split>
      <h1 class="hidden">{t("Buckets")}</h1>
      <div class="bar">
        <FilterField
          label={t("Name")}
          value={filter}
          isMono
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <Action onClick={() => setCreating(true)} kind="primary" icon="plus" isSmall={false}>
          {t("New bucket…")}
        </Action>
      </div>
      <Loading of={loaded}>
        {(buckets) =>
          buckets.length === 0 ? (
            <Empty title={t("No buckets yet")}>
              <p>{describeS3Clients()}</p>
            </Empty>
          ) : (
            <Table
              label={t("Buckets")}
              rows={buckets.filter(({ name }) => name.includes(filter))}
              idOf={({ name }) => name}
              onSelect={({ name }) => navigate(folderHref(name))}
              columns={[
                {
                  title: t("Name"),
                  kind: "mono",
                  sort: ({ name }) => name,
                  render: ({ name }) => <a href={href(folderHref(name))}>{name}</a>,
                },
                {
                  title: t("Objects"),
                  kind: "w-s",
                  isNumber: true,
                  sort: ({ objects }) => objects,
                  render: ({ objects }) => formatNumber(objects),
                },
                {
                  title: t("Size"),
                  kind: "w-s",
                  isNumber: true,
                  sort: ({ bytes }) => bytes,
                  render: ({ bytes }) => formatBytes(bytes),
                },
                {
                  title: t("Quota"),
                  kind: "w-s wide-only",
                  isNumber: true,
                  render: ({ quota }) => formatBytes(quota?.max_bytes),
                },
                {
                  title: t("Settings"),
                  kind: "w-l wide-only",
                  render: ({ versioning, settings }) => (
                    <span class="tags">
                      {versioning === "Enabled" && <span class="tag">{t("versions on")}</span>}
                      {settings.map((name) => (
                        <span key={name} class="tag tag-line">
                          {name}
                        </span>
                      ))}
                    </span>
                  ),
                },
              ]}
            />
          )
        }
      </Loading>
      {isCreating && (
        <NameDialog
          title={t("New bucket")}
          onClose={() => setCreating(false)}
          onSubmit={async (name) => {
            await callService("vault", "/buckets", { method: "POST", json: { name } });
            navigate(folderHref(name));
          }}
        />
      )}
    </Split>
  );
}
