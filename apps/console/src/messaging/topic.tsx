// One topic: tail, stored messages, groups, dead letters, schema, settings.
import { useState } from "preact/hooks";
import { segment } from "../api/api.ts";
import { formatBytes, formatDuration, formatNumber } from "../format/format.ts";
import { navigate } from "../router/router.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import {
  Action,
  AreaField,
  FactRow,
  Facts,
  Menu,
  Section,
  Tabs,
  TextField,
} from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { say } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { callBroker, chosenTenant } from "./broker.ts";
import { BrowseTab } from "./browse.tsx";
import { DeadLetters } from "./dead-letters.tsx";
import { LagList } from "./lag-list.tsx";
import type { Topic } from "./messages.ts";
import { topicPath } from "./paths.ts";
import { SchemaTab } from "./schema.tsx";
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
  const loaded = useLoad(name, () => callBroker<Topic>(`/topics/${segment(name)}`));
  return (
    <Loading of={loaded}>
      {(topic) => <TopicView topic={topic} tab={params["tab"] ?? "tail"} of={loaded} />}
    </Loading>
  );
}

type Open = "publish" | "delete" | undefined;

function TopicView(props: { topic: Topic; tab: string; of: Loaded<Topic> }) {
  const { topic, tab, of } = props;
  const { name } = topic;
  const tenant = chosenTenant();
  const [open, setOpen] = useState<Open>(undefined);
  const publish = (): void => setOpen("publish");
  useCommands([{ label: t("Publish to {name}", { name }), key: "p", icon: "plus", run: publish }]);
  const close = (): void => setOpen(undefined);
  return (
    <div class="rows-auto">
      <div>
        <Title
          isName
          tags={
            <>
              <span class="tag">{t("{n} partitions", { n: topic.partitions })}</span>
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
        >
          {name}
        </Title>
        <Tabs
          label={t("Topic")}
          tabs={[
            { to: topicPath(name), label: t("Tail") },
            { to: topicPath(name, "browse"), label: t("Browse") },
            { to: topicPath(name, "groups"), label: t("Groups") },
            { to: topicPath(name, "dead"), label: t("Dead letters") },
            { to: topicPath(name, "schema"), label: t("Schema") },
            { to: topicPath(name, "settings"), label: t("Settings") },
          ]}
        />
      </div>
      <div class="fill" key={tab}>
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
        {tab === "schema" && <SchemaTab topic={name} />}
        {tab === "settings" && <SettingsTab topic={topic} of={of} />}
      </div>
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
    </div>
  );
}

function describeRetention({ config }: Topic): string {
  if (config === undefined) return "";
  const parts = [];
  if (config.retention_ms >= 0) parts.push(formatDuration(config.retention_ms));
  if (config.retention_bytes >= 0) parts.push(formatBytes(config.retention_bytes));
  return parts.length === 0 ? t("kept forever") : parts.join(` ${t("or")} `);
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
        const { offset } = await callBroker<{ offset: number }>("/publish", {
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

function SettingsTab({ topic, of }: { topic: Topic; of: Loaded<Topic> }) {
  const [isOpen, setOpen] = useState(false);
  const { config } = topic;
  return (
    <Split>
      <div class="narrow">
        <Section
          title={t("Retention")}
          action={
            <button type="button" onClick={() => setOpen(true)}>
              {t("Change")}
            </button>
          }
        >
          <Facts>
            <FactRow term={t("Kept")}>{describeRetention(topic)}</FactRow>
            <FactRow term={t("Clean-up")} isMono>
              {config?.cleanup_policy}
            </FactRow>
            <FactRow term={t("Segment")} isMono>
              {formatBytes(config?.segment_bytes)}
            </FactRow>
            <FactRow term={t("Dead letters")} isMono>
              {topic.dlq_topic}
            </FactRow>
          </Facts>
        </Section>
      </div>
      {isOpen && (
        <RetentionDialog
          topic={topic}
          onClose={() => setOpen(false)}
          onSaved={() => void of.reload()}
        />
      )}
    </Split>
  );
}

const HOUR_MS = 3_600_000;

function RetentionDialog(props: { topic: Topic; onClose: () => void; onSaved: () => void }) {
  const { name, config } = props.topic;
  const read = (value: number | undefined, unit: number): string =>
    value === undefined || value < 0 ? "" : String(value / unit);
  const [hours, setHours] = useState(read(config?.retention_ms, HOUR_MS));
  const [megabytes, setMegabytes] = useState(read(config?.retention_bytes, 1e6));
  return (
    <FormDialog
      title={t("Retention of {name}", { name })}
      submit={t("Save")}
      onClose={props.onClose}
      onSubmit={async () => {
        await callBroker("/topics/retention", {
          method: "POST",
          json: {
            topic: name,
            retention_ms: hours === "" ? -1 : Math.round(Number(hours) * HOUR_MS),
            retention_bytes: megabytes === "" ? -1 : Math.round(Number(megabytes) * 1e6),
          },
        });
        props.onSaved();
      }}
    >
      <TextField
        label={t("Hours")}
        value={hours}
        onInput={setHours}
        type="number"
        hint={t("Empty: forever")}
      />
      <TextField
        label={t("Megabytes")}
        value={megabytes}
        onInput={setMegabytes}
        type="number"
        hint={t("Empty: unlimited")}
      />
      <p class="hint">
        {t("Messages beyond the limits are deleted with their segment, without a way back.")}
      </p>
    </FormDialog>
  );
}
