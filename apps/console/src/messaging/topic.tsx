// One topic: tail, stored messages, groups, dead letters, schema, settings.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatNumber } from "../format/format.ts";
import { navigate } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, AreaField, Menu, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { TabbedPage } from "../view/tabbed-page.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { callBroker, chosenTenant } from "./broker.ts";
import { AnomaliesTab } from "./anomalies.tsx";
import { BrowseTab } from "./browse.tsx";
import { DeadLetters } from "./dead-letters.tsx";
import { LagList } from "./lag-list.tsx";
import { formatPartitions, type TopicDetail } from "./messages.ts";
import { topicPath } from "./paths.ts";
import { Refusal } from "./refusal.tsx";
import { SchemaTab } from "./schema.tsx";
import { describeRetention, SettingsTab } from "./topic-settings.tsx";
import { TransformTab } from "./transform.tsx";
import { TailTab } from "./tail.tsx";
import { describeTenant } from "./tenant.tsx";

/** The page of a topic. */
export function TopicPage({ params }: { params: Record<string, string> }) {
  const name = params["topic"] ?? "";
  useCrumbs([
    { label: t("Messaging"), to: "/messaging/topics" },
    { label: t("Topics"), to: "/messaging/topics" },
    { label: name, isName: true },
  ]);
  const loaded = useLoad(name, () => callBroker<TopicDetail>(`/topics/${segment(name)}`), EVERY_MS);
  return (
    <>
      {loaded.data.value === undefined && <h1 class="hidden">{name}</h1>}
      <Loading of={loaded} whole={{ to: "/messaging/topics", label: t("All topics") }}>
        {(topic) => <TopicView topic={topic} tab={params["tab"] ?? "tail"} of={loaded} />}
      </Loading>
    </>
  );
}

const EVERY_MS = 3_000;

type Open = "publish" | "delete" | undefined;

function TopicView(props: { topic: TopicDetail; tab: string; of: Loaded<TopicDetail> }) {
  const { topic, tab, of } = props;
  const { name } = topic;
  const tenant = chosenTenant();
  const [open, setOpen] = useState<Open>(undefined);
  const publish = (): void => setOpen("publish");
  useCommands([{ label: t("Publish to {name}", { name }), key: "p", icon: "plus", run: publish }]);
  const close = (): void => setOpen(undefined);
  return (
    <>
      <TabbedPage
        name={name}
        tags={
          <>
            <span class="tag">{formatPartitions(topic.partitions)}</span>
            {tenant !== undefined && (
              <span class="tag">{t("Tenant {name}", { name: describeTenant(tenant) })}</span>
            )}
            {topic.has_transform && <span class="tag tag-accent">{t("transform")}</span>}
            <span class="tag tag-line">{describeRetention(topic)}</span>
          </>
        }
        actions={
          <>
            <Action onClick={publish}>{t("Publish…")}</Action>
            <Menu
              label={t("More actions")}
              items={[
                { label: t("Delete the topic…"), isBad: true, onClick: () => setOpen("delete") },
              ]}
            />
          </>
        }
        label={t("Topic")}
        tab={tab}
        notice={<Refusal topic={topic} />}
        tabs={[
          { to: topicPath(name), label: t("Tail") },
          { to: topicPath(name, "browse"), label: t("Browse") },
          { to: topicPath(name, "groups"), label: t("Groups") },
          { to: topicPath(name, "dead"), label: t("Dead letters") },
          { to: topicPath(name, "anomalies"), label: t("Anomalies") },
          { to: topicPath(name, "schema"), label: t("Schema") },
          { to: topicPath(name, "transform"), label: t("Transform") },
          { to: topicPath(name, "settings"), label: t("Settings") },
        ]}
      >
        {tab === "tail" && <TailTab topic={name} partitions={topic.partitions} />}
        {tab === "browse" && <BrowseTab topic={name} />}
        {tab === "groups" && (
          <Split>
            <div class="narrow">
              <LagList topic={name} />
            </div>
          </Split>
        )}
        {tab === "dead" && <DeadLetters only={name} />}
        {tab === "anomalies" && <AnomaliesTab topic={name} />}
        {tab === "schema" && <SchemaTab topic={name} />}
        {tab === "transform" && <TransformTab topic={name} onChanged={() => void of.reload()} />}
        {tab === "settings" && <SettingsTab topic={topic} onSaved={() => of.reload()} />}
      </TabbedPage>
      {open === "publish" && <PublishDialog topic={name} onClose={close} />}
      {open === "delete" && (
        <ConfirmDialog
          title={t("Delete the topic {name}", { name })}
          name={name}
          submit={t("Delete")}
          onClose={close}
          onSubmit={async () => {
            await callBroker(`/topics/${segment(name)}`, { method: "DELETE" });
            say(t("The topic {name} was deleted.", { name }));
            navigate("/messaging/topics");
          }}
        >
          <p>
            {t(
              "All of its messages will be gone; {n} of them were not read by its slowest group.",
              {
                n: formatNumber(topic.queue_depth),
              },
            )}
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}

function PublishDialog({ topic, onClose }: { topic: string; onClose: () => void }) {
  const [key, setKey] = useState("");
  const [payload, setPayload] = useState("{}");
  return (
    <FormDialog
      title={t("Publish to {name}", { name: topic })}
      submit={t("Publish")}
      onClose={onClose}
      onSubmit={async () => {
        const json = { topic, payload, ...(key === "" ? {} : { key }) };
        const { offset } = await callBroker<Answer<"pulse", "POST /publish">>("/publish", {
          method: "POST",
          json,
        });
        say(t("Stored at offset {n}.", { n: formatNumber(offset) }));
      }}
    >
      <TextField label={t("Key")} value={key} onInput={setKey} isMono />
      <AreaField label={t("Payload")} value={payload} rows={10} onInput={setPayload} />
    </FormDialog>
  );
}
