// Sent messages: where they are, and the page of one.
import type { Answer } from "../contract/answer.ts";
import { segment, withQuery } from "../api/api.ts";
import { formatDate, formatMoment } from "../format/format.ts";
import { href, queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, FilterField, Section } from "../view/controls.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading, Problem } from "../view/problem.tsx";
import { State } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { Events, MailSide } from "./mail-side.tsx";
import { MailView } from "./mail-view.tsx";
import { kindOf, SEND, type SentMessage } from "./message.ts";
import { visible } from "./names.ts";
import { messagePath } from "./paths.ts";
import { ResendAction } from "./resend.tsx";

const PAGE = 100;
const STATUSES = ["queued", "sent", "deferred", "bounced", "failed", "suppressed", "canceled"];

/** Messages and where they are. */
export function MessagesPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Messages") }]);
  const to = queryValue("filter");
  const status = queryValue("status");
  const client = queryValue("client");
  const cursor = queryValue("cursor");
  const selected = queryValue("sel");
  const loaded = useLoad(`${to} ${status} ${client} ${cursor}`, () =>
    callService<Answer<"notify", "GET /messages">>(
      "notify",
      withQuery("/messages", { limit: PAGE, to, status, client, cursor }),
    ),
  );
  return (
    <Split
      pane={selected === "" ? undefined : <MessagePane key={selected} id={selected} />}
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <h1 class="hidden">{t("Messages")}</h1>
      <div class="bar">
        <FilterField
          label={t("Recipient's address")}
          icon="search"
          value={to}
          onInput={(value) => setQuery({ filter: value, cursor: undefined }, { replace: true })}
        />
        <select
          class="field small"
          aria-label={t("State")}
          value={status}
          onChange={(event) => setQuery({ status: event.currentTarget.value, cursor: undefined })}
        >
          <option value="">{t("All states")}</option>
          {STATUSES.map((one) => (
            <option key={one} value={one}>
              {one}
            </option>
          ))}
        </select>
        {client !== "" && (
          <Action onClick={() => setQuery({ client: undefined, cursor: undefined })} icon="close">
            {t("Only of {name}", { name: client })}
          </Action>
        )}
      </div>
      <Loading of={loaded}>
        {({ messages, next_cursor: next }) => (
          <>
            {messages.length === 0 && (
              <Empty
                title={to + status + client === "" ? t("No messages yet") : t("No message matches")}
              />
            )}
            {messages.length > 0 && (
              <Table
                label={t("Messages")}
                rows={messages}
                isTall
                idOf={({ message_id: id }) => id}
                selected={selected}
                onSelect={({ message_id: id }) => setQuery({ sel: id })}
                columns={[
                  {
                    title: t("Message"),
                    render: (message) => (
                      <span class="two">
                        <b>{visible(message.subject ?? "–")}</b>
                        <small>{message.recipients.map(({ address }) => address).join(", ")}</small>
                      </span>
                    ),
                  },
                  {
                    title: t("Template"),
                    kind: "w-m mono wide-only",
                    render: ({ template }) => <span class="i2">{template ?? "–"}</span>,
                  },
                  {
                    title: t("Accepted"),
                    kind: "w-s wide-only",
                    isNumber: true,
                    render: ({ created_at: at }) => formatDate(at),
                  },
                  {
                    title: t("State"),
                    kind: "w-m",
                    render: ({ status: one }) => <State kind={kindOf(one)}>{one}</State>,
                  },
                ]}
              />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
    </Split>
  );
}

function useMessage(id: string) {
  return useLoad(`message ${id}`, () =>
    callService<SentMessage>("notify", `/messages/${segment(id)}`),
  );
}

function MessagePane({ id }: { id: string }) {
  const loaded = useMessage(id);
  return (
    <Loading of={loaded}>
      {(message) => (
        <>
          <Section
            title={visible(message.subject ?? "–")}
            action={<a href={href(messagePath(id))}>{t("Open")}</a>}
          >
            <Facts>
              <FactRow term="id" isMono>
                {message.message_id}
              </FactRow>
              <FactRow term={t("From")} isMono>
                {message.from}
              </FactRow>
              <FactRow term={t("Accepted")}>{formatMoment(message.created_at)}</FactRow>
            </Facts>
          </Section>
          <Recipients message={message} />
          <Section title={t("What happened")}>
            <Events events={message.events ?? []} />
          </Section>
        </>
      )}
    </Loading>
  );
}

function Recipients({ message }: { message: SentMessage }) {
  return (
    <Section title={t("Recipients")}>
      <div class="lines">
        {message.recipients.map((recipient) => (
          <div key={recipient.address} class="line">
            <span />
            <b>{recipient.address}</b>
            <State kind={kindOf(recipient.status)}>{recipient.status}</State>
            <small>{recipient.detail ?? ""}</small>
          </div>
        ))}
      </div>
    </Section>
  );
}

/** The page of one message. */
export function MessagePage({ id }: { id: string }) {
  useCrumbs([
    { label: t("Mail") },
    { label: t("Messages"), to: "/mail/messages" },
    { label: id.slice(0, 13), isName: true },
  ]);
  const loaded = useMessage(id);
  const base = `/messages/${segment(id)}`;
  const content = useLoad(`content ${id}`, () =>
    callService<Answer<"notify", "GET /messages/{id}/content">>("notify", `${base}/content`),
  );
  const cancel = (): void =>
    void attempt(async () => {
      await callService("notify", base, { method: "DELETE" });
      await loaded.reload();
    }, t("The message was canceled."));
  return (
    <>
      {loaded.data.value === undefined && <h1 class="hidden">{id}</h1>}
      <Loading of={loaded} whole={{ to: "/mail/messages", label: t("All messages") }}>
        {(message) => {
          const mail = content.data.value;
          const failure = content.failure.value;
          const isOpen = message.recipients.some(({ status }) =>
            ["queued", "deferred"].includes(status),
          );
          const actions = (
            <>
              <ResendAction message={message} />
              <Action
                onClick={cancel}
                needs={SEND}
                blocked={isOpen ? undefined : t("All deliveries have ended.")}
              >
                {t("Cancel the delivery")}
              </Action>
            </>
          );
          const line = {
            subject: message.subject || message.channel,
            from: message.from,
            to: message.recipients.map(({ address }) => address),
            at: message.created_at,
            bytes: message.size_bytes,
          };
          return (
            <Split
              pane={
                <>
                  <MailSide id={id} mail={mail} message={loaded} />
                  <Recipients message={message} />
                </>
              }
            >
              {mail === undefined ? (
                <>
                  <Title actions={actions}>{visible(line.subject)}</Title>
                  {failure === undefined ? (
                    <p class="loading" role="status">
                      {t("Loading …")}
                    </p>
                  ) : (
                    <Problem failure={failure} />
                  )}
                </>
              ) : (
                <MailView
                  id={id}
                  base={base}
                  mail={mail}
                  line={line}
                  hasTemplate={message.template !== null}
                  actions={actions}
                />
              )}
            </Split>
          );
        }}
      </Loading>
    </>
  );
}
