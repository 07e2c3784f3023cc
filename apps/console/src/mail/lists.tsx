// Sent messages and suppressed addresses.
import { useState } from "preact/hooks";
import { segment, withQuery } from "../api/api.ts";
import { formatDate, formatMoment } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { callService } from "../session/session.ts";
import { useCrumbs } from "../stage/stage.ts";
import {
  Action,
  FactRow,
  Facts,
  FilterField,
  Section,
  SelectField,
  TextField,
} from "../view/controls.tsx";
import { FormDialog } from "../view/dialog.tsx";
import { useLoad } from "../view/load.ts";
import { NextPage } from "../view/next-page.tsx";
import { Empty, Split } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { State, type StateKind } from "../view/state.tsx";
import { Table } from "../view/table.tsx";
import { runUnlessUndone } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { Events } from "./inbox.tsx";

const PAGE = 100;
const STATUSES = [
  "queued",
  "scheduled",
  "sent",
  "delivered",
  "deferred",
  "bounced",
  "failed",
  "suppressed",
];

interface SentMessage {
  message_id: string;
  status: string;
  subject?: string;
  from: string;
  template: string | null;
  created_at: string;
  recipients: { address: string; status: string; detail?: string | null; attempts: number }[];
  events?: { type: string; at: string; detail?: string }[];
}

function kindOf(status: string): StateKind {
  if (["sent", "delivered"].includes(status)) return "ok";
  if (["bounced", "failed"].includes(status)) return "bad";
  return ["deferred", "suppressed"].includes(status) ? "warn" : "off";
}

/** Messages and where they are. */
export function MessagesPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Messages") }]);
  const to = queryValue("filter");
  const status = queryValue("status");
  const cursor = queryValue("cursor");
  const selected = queryValue("sel");
  const loaded = useLoad(`${to} ${status} ${cursor}`, () =>
    callService<{ messages: SentMessage[]; next_cursor: string | null }>(
      "notify",
      withQuery("/messages", { limit: PAGE, to, status, cursor }),
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
      </div>
      <Loading of={loaded}>
        {({ messages, next_cursor: next }) => (
          <>
            {messages.length === 0 && <Empty title={t("No message matches")} />}
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
                        <b>{message.subject ?? "–"}</b>
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

function MessagePane({ id }: { id: string }) {
  const loaded = useLoad(id, () => callService<SentMessage>("notify", `/messages/${segment(id)}`));
  return (
    <Loading of={loaded}>
      {(message) => (
        <>
          <Section title={message.subject ?? "–"}>
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
          <Section title={t("What happened")}>
            <Events events={message.events ?? []} />
          </Section>
        </>
      )}
    </Loading>
  );
}

interface Suppressed {
  email: string;
  reason: string;
  suppressed_at: string;
}

/** Addresses that receive no mail. */
export function SuppressionPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Suppression") }]);
  const [isAdding, setAdding] = useState(false);
  const cursor = queryValue("cursor");
  const loaded = useLoad(`suppression ${cursor}`, () =>
    callService<{ addresses: Suppressed[]; next_cursor: string | null }>(
      "notify",
      withQuery("/suppression", { limit: PAGE, cursor }),
    ),
  );
  const remove = (email: string): void =>
    runUnlessUndone(t("Removing {name} from the list", { name: email }), async () => {
      await callService("notify", `/suppression/${segment(email)}`, { method: "DELETE" });
      await loaded.reload();
    });
  return (
    <Split>
      <h1 class="hidden">{t("Suppression")}</h1>
      <div class="bar">
        <span class="lead grow">{t("Addresses that receive no mail.")}</span>
        <Action onClick={() => setAdding(true)} kind="primary" icon="plus">
          {t("Add an address")}
        </Action>
      </div>
      <Loading of={loaded}>
        {({ addresses, next_cursor: next }) => (
          <>
            {addresses.length === 0 && <Empty title={t("No address is suppressed")} />}
            {addresses.length > 0 && (
              <Table
                label={t("Suppression")}
                rows={addresses}
                idOf={({ email }) => email}
                columns={[
                  { title: t("Address"), kind: "mono", render: ({ email }) => email },
                  { title: t("Reason"), kind: "w-m", render: ({ reason }) => reason },
                  {
                    title: t("Since"),
                    kind: "w-l wide-only",
                    render: ({ suppressed_at: at }) => formatMoment(at),
                  },
                  {
                    title: t("Actions"),
                    kind: "w-m num",
                    render: ({ email }) => (
                      <Action onClick={() => remove(email)} kind="quiet">
                        {t("Remove")}
                      </Action>
                    ),
                  },
                ]}
              />
            )}
            <NextPage cursor={next} />
          </>
        )}
      </Loading>
      {isAdding && (
        <AddAddress onClose={() => setAdding(false)} onSaved={() => void loaded.reload()} />
      )}
    </Split>
  );
}

function AddAddress(props: { onClose: () => void; onSaved: () => void }) {
  const [email, setEmail] = useState("");
  const [reason, setReason] = useState("manual");
  return (
    <FormDialog
      title={t("Add an address")}
      submit={t("Add")}
      onClose={props.onClose}
      onSubmit={async () => {
        await callService("notify", "/suppression", { method: "POST", json: { email, reason } });
        props.onSaved();
      }}
    >
      <TextField label={t("Address")} value={email} onInput={setEmail} type="email" required />
      <SelectField
        label={t("Reason")}
        value={reason}
        options={[
          ["manual", t("by hand")],
          ["unsubscribe", t("unsubscribed")],
          ["complaint", t("complaint")],
          ["hard_bounce", t("does not exist")],
        ]}
        onChange={setReason}
      />
    </FormDialog>
  );
}
