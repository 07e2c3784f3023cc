// All topics.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { formatNumber } from "../format/format.ts";
import { href, navigate, queryValue, setQuery } from "../router/router.ts";
import { DEFAULT_TENANT, publishCommand, useListeners } from "../session/listeners.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField, TextField } from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { callService } from "../session/session.ts";
import { callBroker, chosenTenant, hasTenants, mayChooseTenant } from "./broker.ts";
import { describeTenant, identify, TenantChip } from "./tenant.tsx";
import type { Topic } from "./messages.ts";
import { topicPath } from "./paths.ts";

const EVERY_MS = 3_000;
const SHOWN_MAX = 1_000;

export function TopicsPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Topics") }]);
  useListeners();
  const [isCreating, setCreating] = useState(false);
  const loaded = useLoad(
    "topics",
    () =>
      mayChooseTenant()
        ? callService<Answer<"pulse", "GET /topics">>("pulse", "/topics?tenant=*")
        : callBroker<Answer<"pulse", "GET /topics">>("/topics"),
    EVERY_MS,
  );
  const filter = queryValue("filter");
  const chosen = mayChooseTenant() ? chosenTenant() : undefined;
  const create = (): void => setCreating(true);
  useCommands([{ label: t("New topic"), key: "n", icon: "plus", run: create }]);
  return (
    <Split>
      <h1 class="hidden">{t("Topics")}</h1>
      <div class="bar">
        <FilterField
          label={t("Name")}
          value={filter}
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <TenantChip />
        <Action onClick={create} kind="primary" icon="plus" isSmall={false}>
          {t("New topic")}
        </Action>
      </div>
      <Loading of={loaded}>
        {({ topics }) => {
          const tenants = [...new Set(topics.map(({ tenant = "" }) => tenant))].sort();
          const isShared = mayChooseTenant() && hasTenants(tenants);
          const pathOf = (topic: Topic): string =>
            topicPath(topic.name, "tail", isShared ? topic.tenant : undefined);
          const shown = topics.filter(
            ({ name, tenant }) =>
              name.includes(filter) && (chosen === undefined || tenant === chosen),
          );
          if (topics.length === 0) {
            return (
              <Empty title={t("No topics yet")}>
                <p>{t("A topic is created with its first message.")}</p>
                <div class="cmd">
                  <i aria-hidden="true">$</i>
                  <code>{publishCommand("orders", chosen ?? DEFAULT_TENANT)}</code>
                </div>
              </Empty>
            );
          }
          return (
            <Table
              label={t("Topics")}
              rows={shown.slice(0, SHOWN_MAX)}
              idOf={(topic) => identify(topic, topics)}
              onSelect={(topic) => navigate(pathOf(topic))}
              columns={[
                {
                  title: t("Name"),
                  sort: ({ name }) => name,
                  render: (topic) => (
                    <a class="mono" href={href(pathOf(topic))}>
                      {topic.name}
                    </a>
                  ),
                },
                ...(isShared
                  ? [
                      {
                        title: t("Tenant"),
                        kind: "w-m" as const,
                        sort: ({ tenant = "" }: Topic) => tenant,
                        render: ({ tenant = "" }: Topic) => <TenantLink tenant={tenant} />,
                      },
                    ]
                  : []),
                {
                  title: t("Not read yet"),
                  kind: "w-m",
                  isNumber: true,
                  sort: ({ queue_depth: depth }) => depth,
                  render: ({ queue_depth: depth }) => formatNumber(depth),
                },
                {
                  title: t("Subscribers"),
                  kind: "w-s wide-only",
                  isNumber: true,
                  sort: ({ subscribers }) => subscribers,
                  render: ({ subscribers }) => formatNumber(subscribers),
                },
                {
                  title: t("Partitions"),
                  kind: "w-s wide-only",
                  isNumber: true,
                  sort: ({ partitions }) => partitions,
                  render: ({ partitions }) => formatNumber(partitions),
                },
                {
                  title: t("Dead letters to"),
                  kind: "w-xl wide-only",
                  render: ({ dlq_topic: name }) => <span class="mono i3">{name}</span>,
                },
              ]}
            />
          );
        }}
      </Loading>
      {isCreating && (
        <CreateTopic
          onClose={() => setCreating(false)}
          onCreated={(name) => navigate(topicPath(name))}
        />
      )}
    </Split>
  );
}

/** Shows the topics of one tenant. */
function TenantLink({ tenant }: { tenant: string }) {
  return (
    <a class="mono" href={href(`/messaging/topics?tenant=${encodeURIComponent(tenant)}`)}>
      {describeTenant(tenant)}
    </a>
  );
}

function CreateTopic(props: { onClose: () => void; onCreated: (name: string) => void }) {
  const [name, setName] = useState("");
  const [partitions, setPartitions] = useState("1");
  return (
    <FormDialog
      title={t("New topic")}
      submit={t("Create")}
      onClose={props.onClose}
      onSubmit={async () => {
        const json = { name, partitions: Number(partitions) };
        await callBroker("/topics", { method: "POST", json });
        props.onCreated(name);
      }}
    >
      <TextField label={t("Name")} name="name" value={name} onInput={setName} isMono required />
      <TextField
        label={t("Partitions")}
        name="partitions"
        value={partitions}
        onInput={setPartitions}
        type="number"
        hint={t("Messages with the same key stay in order within a partition.")}
      />
    </FormDialog>
  );
}
