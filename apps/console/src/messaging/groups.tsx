// All groups: which one lags, and its partitions; moving a group to another offset, with a preview.
import { useState } from "preact/hooks";
import { formatMoment, formatNumber } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FilterField, Section, SelectField, TextField } from "../view/controls.tsx";
import { FormDialog, STAY_OPEN } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { Table } from "../view/table.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { callBroker } from "./broker.ts";
import type { Lag } from "./messages.ts";
import { TenantChip } from "./tenant.tsx";

const EVERY_MS = 2_000;

interface Group {
  id: string;
  lag: number;
  topics: string[];
  parts: Lag[];
}

/** The page. */
export function GroupsPage() {
  useCrumbs([{ label: t("Messaging") }, { label: t("Groups") }]);
  const [isMoving, setMoving] = useState(false);
  const loaded = useLoad(
    "lag",
    async () => collect((await callBroker<{ groups: Lag[] }>("/consumers/lag")).groups),
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
            label: t("Move {name} to another offset…", { name: group.id }),
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
          const shown = groups.filter(
            ({ id, topics }) =>
              id.includes(filter) || topics.some((topic) => topic.includes(filter)),
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
                { title: t("Name"), kind: "mono", sort: ({ id }) => id, render: ({ id }) => id },
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
        <MoveDialog
          group={group}
          onClose={() => setMoving(false)}
          onMoved={() => void loaded.reload()}
        />
      )}
    </Split>
  );
}

function collect(lags: readonly Lag[]): Group[] {
  const groups = new Map<string, Group>();
  for (const lag of lags) {
    const known = groups.get(lag.group) ?? { id: lag.group, lag: 0, topics: [], parts: [] };
    known.lag += lag.lag;
    known.parts.push(lag);
    if (!known.topics.includes(lag.topic)) known.topics.push(lag.topic);
    groups.set(lag.group, known);
  }
  return [...groups.values()].sort((one, other) => other.lag - one.lag);
}

function GroupPane({ group, onMove }: { group: Group; onMove: () => void }) {
  return (
    <>
      <Section
        title={group.id}
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

function MoveDialog(props: { group: Group; onClose: () => void; onMoved: () => void }) {
  const { group } = props;
  const [topic, setTopic] = useState(group.topics[0] ?? "");
  const [mode, setMode] = useState("offset");
  const [value, setValue] = useState("0");
  const [preview, setPreview] = useState("");
  const parts = group.parts.filter((part) => part.topic === topic);
  const findOffsets = async (): Promise<{ part: Lag; offset: number }[]> => {
    const found = [];
    for (const part of parts) {
      let offset = Number(value);
      if (mode === "time") {
        const json = { topic, timestamp: Date.parse(value), partition: part.partition };
        const answer = await callBroker<{ offset?: number }>("/replay/time", {
          method: "POST",
          json,
        });
        offset = answer.offset ?? part.latest_offset;
      }
      if (mode === "end") offset = part.latest_offset;
      found.push({ part, offset: Math.min(offset, part.latest_offset) });
    }
    return found;
  };
  const describe = async (): Promise<void> => {
    const found = await findOffsets();
    const behind = found.reduce((sum, { part, offset }) => sum + part.latest_offset - offset, 0);
    setPreview(
      t("{n} messages are read again or are still to be read, instead of {now}.", {
        n: formatNumber(behind),
        now: formatNumber(parts.reduce((sum, { lag }) => sum + lag, 0)),
      }),
    );
  };
  return (
    <FormDialog
      title={t("Move {name} to another offset…", { name: group.id })}
      submit={preview === "" ? t("Preview") : t("Move")}
      isDestructive={preview !== ""}
      onClose={props.onClose}
      onSubmit={async () => {
        if (preview === "") {
          await describe();
          return STAY_OPEN;
        }
        for (const { part, offset } of await findOffsets()) {
          const json = {
            topic,
            group_name: group.id,
            start_offset: offset,
            partition: part.partition,
          };
          await callBroker("/replay", { method: "POST", json });
        }
        props.onMoved();
        return say(
          t("{name} was moved at {time}.", { name: group.id, time: formatMoment(Date.now()) }),
        );
      }}
    >
      <SelectField
        label={t("Topic")}
        value={topic}
        options={group.topics.map((name) => [name, name] as const)}
        onChange={(name) => {
          setTopic(name);
          setPreview("");
        }}
      />
      <SelectField
        label={t("To")}
        value={mode}
        options={[
          ["offset", t("an offset of each partition")],
          ["time", t("a time")],
          ["end", t("the end: skip everything")],
        ]}
        onChange={(next) => {
          setMode(next);
          setPreview("");
          setValue(next === "time" ? new Date(Date.now() - 3_600_000).toISOString() : "0");
        }}
      />
      {mode !== "end" && (
        <TextField
          label={mode === "time" ? t("Time (RFC 3339)") : t("Offset")}
          value={value}
          isMono
          onInput={(next) => {
            setValue(next);
            setPreview("");
          }}
        />
      )}
      {preview !== "" && <p role="status">{preview}</p>}
    </FormDialog>
  );
}
