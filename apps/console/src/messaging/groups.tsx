// All groups: which one lags, and its partitions.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { t } from "../words/words.ts";
import { callAllTenants, hasTenants, mayChooseTenant } from "./broker.ts";
import type { Lag } from "./messages.ts";
import { MoveGroup } from "./move-group.tsx";
import { describeTenant, identify, TenantChip } from "./tenant.tsx";

const EVERY_MS = 2_000;

interface Group {
  /** The name, with its tenant if two tenants have a group of this name. */
  id: string;
  name: string;
  tenant: string | undefined;
  lag: number;
  topics: string[];
  parts: Lag[];
}

export function GroupsPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Groups") }]);
  const [isMoving, setMoving] = useState(false);
  const loaded = useLoad(
    "lag",
    async () =>
      collect(
        (await callAllTenants<Answer<"pulse", "GET /consumers/lag">>("/consumers/lag")).groups,
      ),
    EVERY_MS,
  );
  const filter = queryValue("filter");
  const selected = queryValue("sel");
  const group = loaded.data.value?.find(({ id }) => id === selected);
  const move = (): void => setMoving(true);
  useCommands(
    group === undefined
      ? []
      : [
          {
            label: t("Move {name} to another offset…", { name: group.name }),
            key: "r",
            icon: "again",
            run: move,
          },
        ],
  );
  return (
    <Split
      pane={group === undefined ? undefined : <GroupPane group={group} onMove={move} />}
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Groups")}</h1>
      <div class="bar">
        <FilterField
          label={t("Name or topic")}
          value={filter}
          onInput={(value) => setQuery({ filter: value }, { replace: true })}
        />
        <TenantChip />
      </div>
      <Loading of={loaded}>
        {(groups) => {
          const isShared = hasTenants(groups.map(({ tenant = "" }) => tenant)) && mayChooseTenant();
          const shown = groups.filter(
            ({ name, topics }) =>
              name.includes(filter) || topics.some((topic) => topic.includes(filter)),
          );
          if (groups.length === 0) {
            return (
              <Empty title={t("No groups yet")}>
                <p>{t("A group exists once it has committed an offset.")}</p>
              </Empty>
            );
          }
          return (
            <Table
              label={t("Groups")}
              rows={shown}
              idOf={({ id }) => id}
              selected={selected}
              onSelect={({ id }) => setQuery({ sel: id })}
              columns={[
                {
                  title: t("Name"),
                  kind: "mono",
                  sort: ({ name }) => name,
                  render: ({ name }) => name,
                },
                ...(isShared
                  ? [
                      {
                        title: t("Tenant"),
                        kind: "w-m" as const,
                        sort: ({ tenant = "" }: Group) => tenant,
                        render: ({ tenant = "" }: Group) => (
                          <span class="mono">{describeTenant(tenant)}</span>
                        ),
                      },
                    ]
                  : []),
                {
                  title: t("Topics"),
                  kind: "mono wide-only",
                  render: ({ topics }) => <span class="i2">{topics.join(", ")}</span>,
                },
                {
                  title: t("Partitions"),
                  kind: "w-s wide-only",
                  isNumber: true,
                  render: ({ parts }) => parts.length,
                },
                {
                  title: t("Behind"),
                  kind: "w-s",
                  isNumber: true,
                  sort: ({ lag }) => lag,
                  render: ({ lag }) => (
                    <span class={lag > 1000 ? "warn" : ""}>{formatNumber(lag)}</span>
                  ),
                },
              ]}
            />
          );
        }}
      </Loading>
      {isMoving && group !== undefined && (
        <MoveGroup
          group={group.name}
          tenant={group.tenant}
          topics={group.topics}
          onClose={() => setMoving(false)}
          onMoved={() => loaded.reload()}
        />
      )}
    </Split>
  );
}

function collect(lags: readonly Lag[]): Group[] {
  const groups = new Map<string, Omit<Group, "id">>();
  for (const lag of lags) {
    const { group: name, tenant } = lag;
    const key = JSON.stringify([tenant, name]);
    const known = groups.get(key) ?? { name, tenant, lag: 0, topics: [], parts: [] };
    known.lag += lag.lag;
    known.parts.push(lag);
    if (!known.topics.includes(lag.topic)) known.topics.push(lag.topic);
    groups.set(key, known);
  }
  const all = [...groups.values()].sort((one, other) => other.lag - one.lag);
  return all.map((group) => ({ ...group, id: identify(group, all) }));
}

function GroupPane({ group, onMove }: { group: Group; onMove: () => void }) {
  return (
    <>
      <Section
        title={group.name}
        note={t("{n} behind", { n: formatNumber(group.lag) })}
        action={<Action onClick={onMove}>{t("Move…")}</Action>}
      >
        <table class="table flat" aria-label={t("Partitions")}>
          <thead>
            <tr>
              <th>{t("Partition")}</th>
              <th class="num">{t("Committed")}</th>
              <th class="num">{t("Latest")}</th>
              <th class="num">{t("Behind")}</th>
            </tr>
          </thead>
          <tbody>
            {group.parts.map((part) => (
              <tr key={`${part.topic}/${part.partition}`}>
                <td class="mono" title={part.topic}>{`${part.topic} / ${part.partition}`}</td>
                <td class="num">{formatNumber(part.committed_offset)}</td>
                <td class="num">{formatNumber(part.latest_offset)}</td>
                <td class="num">{formatNumber(part.lag)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </Section>
    </>
  );
}
