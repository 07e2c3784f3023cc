// The development inbox: what programs sent, as its readers would see it.
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatBytes, formatDate, formatMoment } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, FilterField, Section, Segments } from "../view/controls.tsx";
import { ConfirmDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";

const PAGE = 100;
const EVERY_MS = 3_000;

interface InboxItem {
  message_id: string;
  channel: string;
  from: string;
  to: string[];
  subject?: string;
  size_bytes: number;
  received_at: string;
}

interface InboxMail extends InboxItem {
  headers: { name: string; value: string }[];
  text?: string;
  html?: string;
  attachments: { filename?: string; content_type?: string; size_bytes?: number }[];
}

/** The page. */
export function InboxPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Inbox") }]);
  const [isEmptying, setEmptying] = useState(false);
  const filter = queryValue("filter").toLowerCase();
  const loaded = useLoad(
    "inbox",
    async () =>
      (await callService<{ messages: InboxItem[] }>("notify", withQuery("/inbox", { limit: PAGE })))
        .messages,
    EVERY_MS,
  );
  const mails = (loaded.data.value ?? []).filter(({ subject = "", to }) =>
    `${subject} ${to.join(" ")}`.toLowerCase().includes(filter),
  );
  const selected = queryValue("sel") || (mails[0]?.message_id ?? "");
  return (
    <div class="inbox">
      <h1 class="hidden">{t("Inbox")}</h1>
      <nav class="causes" aria-label={t("Inbox")}>
        <div class="bar">
          <FilterField
            label={t("Recipient or subject")}
            icon="search"
            value={queryValue("filter")}
            onInput={(value) => setQuery({ filter: value }, { replace: true })}
          />
          <Action onClick={() => setEmptying(true)} kind="quiet" icon="trash">
            {t("Empty…")}
          </Action>
        </div>
        <Loading of={loaded}>
          {() =>
            mails.map((mail) => (
              <button
                key={mail.message_id}
                type="button"
                data-row={mail.message_id}
                class={mail.message_id === selected ? "mail-item sel" : "mail-item"}
                aria-current={mail.message_id === selected ? "true" : undefined}
                onClick={() => setQuery({ sel: mail.message_id })}
              >
                <span class="cut i2">{mail.to.join(", ")}</span>
                <span class="mono i3">{formatDate(mail.received_at)}</span>
                <b class="cut">{mail.subject ?? mail.channel}</b>
              </button>
            ))
          }
        </Loading>
      </nav>
      {selected === "" ? (
        <Empty title={t("No mail yet")}>
          <p>
            {t(
              "Without a relay, mails that programs send are kept here instead of leaving this machine.",
            )}
          </p>
        </Empty>
      ) : (
        <MailView key={selected} id={selected} onDeleted={() => void loaded.reload()} />
      )}
      {isEmptying && (
        <ConfirmDialog
          title={t("Empty the inbox")}
          name="inbox"
          submit={t("Delete all")}
          onClose={() => setEmptying(false)}
          onSubmit={async () => {
            await callService("notify", "/inbox", { method: "DELETE" });
            setQuery({ sel: undefined });
            await loaded.reload();
          }}
        >
          <p>{t("{n} mails will be gone.", { n: mails.length })}</p>
        </ConfirmDialog>
      )}
    </div>
  );
}

type View = "html" | "text" | "headers";

function MailView({ id, onDeleted }: { id: string; onDeleted: () => void }) {
  const [view, setView] = useState<View>("html");
  const [width, setWidth] = useState<"desktop" | "phone">("desktop");
  const path = `/inbox/${segment(id)}`;
  const loaded = useLoad(id, () => callService<InboxMail>("notify", path));
  const remove = (): void =>
    runUnlessUndone(t("Deleting the mail"), async () => {
      await callService("notify", path, { method: "DELETE" });
      setQuery({ sel: undefined });
      onDeleted();
    });
  useCommands([{ label: t("Delete the mail"), key: "e", icon: "trash", run: remove }]);
  return (
    <Loading of={loaded}>
      {(mail) => {
        const shown = view === "html" && mail.html === undefined ? "text" : view;
        return (
          <Split pane={<MailSide mail={mail} />}>
            <Title
              actions={
                <>
                  <a class="btn sm" href={api("notify", `${path}/raw`)} download={`${id}.eml`}>
                    {t("Source")}
                  </a>
                  <Action onClick={remove} icon="trash" shortcut="e">
                    {t("Delete")}
                  </Action>
                </>
              }
            >
              {mail.subject ?? mail.channel}
            </Title>
            <p class="mail-line">
              {mail.from} {t("to")} {mail.to.join(", ")} · {formatMoment(mail.received_at)} ·{" "}
              {formatBytes(mail.size_bytes)}
            </p>
            <div class="bar">
              <Segments<View>
                label={t("View")}
                value={shown}
                options={[
                  ["html", "HTML"],
                  ["text", t("Text")],
                  ["headers", t("Headers")],
                ]}
                onChange={setView}
              />
              <span class="grow" />
              {shown === "html" && (
                <Segments
                  label={t("Width")}
                  value={width}
                  options={[
                    ["desktop", t("Desktop")],
                    ["phone", t("Phone")],
                  ]}
                  onChange={setWidth}
                />
              )}
            </div>
            {shown === "html" && (
              <div class="mail-stage">
                {/* Without permissions: no scripts, forms, navigation or same origin. */}
                <iframe
                  class={width === "phone" ? "mail-frame mail-phone" : "mail-frame"}
                  sandbox=""
                  title={t("HTML of the mail")}
                  src={api("notify", `${path}/html`)}
                />
              </div>
            )}
            {shown === "text" && <pre class="mail-text">{mail.text ?? ""}</pre>}
            {shown === "headers" && (
              <dl class="kv mail-headers">
                {mail.headers.map(({ name, value }) => (
                  <FactRow key={name + value} term={name} isMono>
                    <span class="wrap">{value}</span>
                  </FactRow>
                ))}
              </dl>
            )}
          </Split>
        );
      }}
    </Loading>
  );
}

interface Delivery {
  status: string;
  template: string | null;
  events: { type: string; at: string; detail?: string }[];
}

function MailSide({ mail }: { mail: InboxMail }) {
  const loaded = useLoad(`message ${mail.message_id}`, () =>
    callService<Delivery>("notify", `/messages/${segment(mail.message_id)}`),
  );
  return (
    <>
      <Section title={t("What happened")}>
        <Loading of={loaded}>{({ events }) => <Events events={events} />}</Loading>
      </Section>
      <Section title={t("Message")}>
        <Facts>
          <FactRow term="id" isMono>
            {mail.message_id}
          </FactRow>
          <FactRow term={t("Template")} isMono>
            {loaded.data.value?.template ?? "–"}
          </FactRow>
          <FactRow term={t("Channel")}>{mail.channel}</FactRow>
        </Facts>
      </Section>
      {mail.attachments.length > 0 && (
        <Section title={t("Attachments")}>
          {mail.attachments.map((file, index) => (
            <p key={`${index} ${file.filename}`} class="mono cut">
              {file.filename ?? "–"} <span class="i3">{file.content_type}</span>
            </p>
          ))}
        </Section>
      )}
    </>
  );
}

/** Events of a message, oldest first. */
export function Events({ events }: { events: Delivery["events"] }) {
  return (
    <div class="lines">
      {events.map((event) => (
        <div key={event.at + event.type} class="change">
          <span class="mono i3">{formatDate(event.at)}</span>
          <span>{event.type}</span>
          <span class="i2" title={event.detail}>
            {event.detail ?? ""}
          </span>
        </div>
      ))}
    </div>
  );
}
