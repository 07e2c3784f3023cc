// Rules for received mail: in the order in which they are tried, with a trial of an address.
import type { Answer } from "../contract/answer.ts";
import { useState } from "preact/hooks";
import { segment, send } from "../api/api.ts";
import { formatMoment } from "../format/format.ts";
import { queryValue, setQuery } from "../router/router.ts";
import { api, callService } from "../session/session.ts";
import { useCommands, useCrumbs } from "../stage/stage.ts";
import { Action, FactRow, Facts, Section, TextField } from "../view/controls.tsx";
import { ConfirmDialog, FormDialog } from "../view/dialog.tsx";
import { useLoad, type Loaded } from "../view/load.ts";
import { Empty, Split, Title } from "../view/pane.tsx";
import { Loading } from "../view/problem.tsx";
import { SecretDialog } from "../view/secret.tsx";
import { Table } from "../view/table.tsx";
import { attempt } from "../view/toast.tsx";
import { t } from "../words/words.ts";
import { MANAGE } from "./message.ts";

const RULES = "/inbound/rules";

type Rule = Answer<"notify", "GET /inbound/rules">["rules"][number];

export function InboundPage() {
  useCrumbs([{ label: t("Mail") }, { label: t("Inbound rules") }]);
  const [isCreating, setCreating] = useState(false);
  const [secret, setSecret] = useState<string | undefined>(undefined);
  const selected = queryValue("sel");
  const loaded = useLoad(
    "rules",
    async () => (await callService<Answer<"notify", "GET /inbound/rules">>("notify", RULES)).rules,
  );
  const create = (): void => setCreating(true);
  useCommands([
    { label: t("New inbound rule"), key: "n", icon: "plus", needs: MANAGE, run: create },
  ]);
  return (
    <Split
      pane={
        selected === "" ? undefined : (
          <RulePane key={selected} id={selected} rules={loaded} onSecret={setSecret} />
        )
      }
      onClosePane={() => setQuery({ sel: undefined })}
    >
      <Title
        actions={
          <Action onClick={create} needs={MANAGE} kind="primary" icon="plus">
            {t("New rule")}
          </Action>
        }
      >
        {t("Inbound rules")}
      </Title>
      <Trial />
      <Loading of={loaded}>
        {(rules) =>
          rules.length === 0 ? (
            <Empty title={t("No rules yet")}>
              <p>{t("Mail to addresses without a rule is refused with 550.")}</p>
            </Empty>
          ) : (
            <Table
              label={t("Inbound rules")}
              rows={rules}
              isTall
              idOf={({ rule_id: id }) => id}
              selected={selected}
              onSelect={({ rule_id: id }) => setQuery({ sel: id })}
              columns={[
                {
                  title: t("Rule"),
                  render: ({ name, match }) => (
                    <span class="two">
                      <b>{name}</b>
                      <small class="mono">{match.to_pattern}</small>
                    </span>
                  ),
                },
                {
                  title: t("Target"),
                  kind: "mono wide-only",
                  render: ({ forward_to: target }) => <span class="i2 cut">{target}</span>,
                },
                {
                  title: t("Priority"),
                  kind: "w-s",
                  isNumber: true,
                  render: ({ priority }) => priority,
                },
              ]}
            />
          )
        }
      </Loading>
      {isCreating && (
        <RuleDialog
          title={t("New inbound rule")}
          rule={undefined}
          onClose={() => setCreating(false)}
          onSubmit={async (json) => {
            const made = await callService<Answer<"notify", "POST /inbound/rules">>(
              "notify",
              RULES,
              {
                method: "POST",
                json,
              },
            );
            setSecret(made.secret);
            setQuery({ sel: made.rule_id });
            await loaded.reload();
          }}
        />
      )}
      {secret !== undefined && (
        <SecretDialog
          title={t("Secret of the rule")}
          values={[secret]}
          note={t("It verifies the signatures of forwards (Standard Webhooks). It is shown once.")}
          onClose={() => setSecret(undefined)}
        />
      )}
    </Split>
  );
}

/** Tries an address: the rule that would get its mail. No mail is sent. */
function Trial() {
  const [to, setTo] = useState("");
  const [result, setResult] = useState<{ to: string; rules: Rule[] } | undefined>(undefined);
  const run = (): void =>
    void attempt(async () => {
      const { rules } = await callService<Answer<"notify", "POST /inbound/rules/test">>(
        "notify",
        `${RULES}/test`,
        {
          method: "POST",
          json: { to },
        },
      );
      setResult({ to, rules });
    });
  const [first, ...others] = result?.rules ?? [];
  return (
    <form
      class="bar"
      onSubmit={(event) => {
        event.preventDefault();
        if (to.length > 2) run();
      }}
    >
      <input
        class="field small mono mail-trial"
        aria-label={t("Address to try")}
        placeholder={t("Address to try")}
        value={to}
        spellcheck={false}
        autocomplete="off"
        onInput={(event) => setTo(event.currentTarget.value)}
      />
      <Action
        onClick={run}
        needs={MANAGE}
        blocked={to.length > 2 ? undefined : t("Type an address")}
      >
        {t("Try")}
      </Action>
      <span role="status">
        {result !== undefined &&
          first === undefined &&
          t("No rule matches {name}: its mail is refused with 550.", { name: result.to })}
        {result !== undefined && first !== undefined && (
          <>
            {t("{name} gets mail to {address}.", { name: first.name, address: result.to })}
            {others.length > 0 &&
              ` ${t("{n} more rules match, but are not used.", { n: others.length })}`}
          </>
        )}
      </span>
    </form>
  );
}

function RulePane(props: {
  id: string;
  rules: Loaded<Rule[]>;
  onSecret: (secret: string) => void;
}) {
  const { id, rules, onSecret } = props;
  const [open, setOpen] = useState<"edit" | "delete" | "secret" | undefined>(undefined);
  const path = `${RULES}/${segment(id)}`;
  const loaded = useLoad(`rule ${id}`, async (signal) => {
    const answer = await send(api("notify", path), { signal });
    return { rule: (await answer.json()) as Rule, tag: answer.headers.get("etag") ?? "" };
  });
  const close = (): void => setOpen(undefined);
  const reload = async (): Promise<void> => {
    await Promise.all([loaded.reload(), rules.reload()]);
  };
  return (
    <Loading of={loaded} whole={{ to: "/mail/inbound", label: t("All rules") }}>
      {({ rule, tag }) => (
        <>
          <Section title={rule.name}>
            <Facts>
              <FactRow term={t("Recipients")} isMono>
                {rule.match.to_pattern}
              </FactRow>
              <FactRow term={t("Target")} isMono>
                <span class="wrap">{rule.forward_to}</span>
              </FactRow>
              <FactRow term={t("Priority")}>{rule.priority}</FactRow>
              <FactRow term={t("Created")}>{formatMoment(rule.created_at)}</FactRow>
            </Facts>
          </Section>
          <div class="bar">
            <Action onClick={() => setOpen("edit")} needs={MANAGE} kind="primary">
              {t("Edit…")}
            </Action>
            <Action onClick={() => setOpen("secret")} needs={MANAGE}>
              {t("New secret…")}
            </Action>
            <Action onClick={() => setOpen("delete")} needs={MANAGE} kind="bad">
              {t("Delete…")}
            </Action>
          </div>
          {open === "edit" && (
            <RuleDialog
              title={t("Edit {name}", { name: rule.name })}
              rule={rule}
              onClose={close}
              onSubmit={async (json) => {
                const headers = { "If-Match": tag };
                try {
                  await callService("notify", path, { method: "PATCH", json, headers });
                } finally {
                  await reload();
                }
              }}
            />
          )}
          {open === "secret" && (
            <FormDialog
              title={t("New secret for {name}", { name: rule.name })}
              submit={t("Replace the secret")}
              createsSecret
              onClose={close}
              onSubmit={async () => {
                const made = await callService<
                  Answer<"notify", "POST /inbound/rules/{id}/rotate-secret">
                >("notify", `${path}/rotate-secret`, { method: "POST" });
                onSecret(made.secret);
              }}
            >
              <p>{t("The previous secret also signs for 24 hours.")}</p>
            </FormDialog>
          )}
          {open === "delete" && (
            <ConfirmDialog
              title={t("Delete {name}", { name: rule.name })}
              name={rule.name}
              submit={t("Delete")}
              onClose={close}
              onSubmit={async () => {
                await callService("notify", path, { method: "DELETE" });
                setQuery({ sel: undefined });
                await rules.reload();
              }}
            >
              <p>
                {t(
                  "Mail to {name} is refused unless another rule matches, and waiting forwards fail.",
                  {
                    name: rule.match.to_pattern,
                  },
                )}
              </p>
            </ConfirmDialog>
          )}
        </>
      )}
    </Loading>
  );
}

function RuleDialog(props: {
  title: string;
  rule: Rule | undefined;
  onClose: () => void;
  onSubmit: (json: object) => Promise<void>;
}) {
  const { rule } = props;
  const [name, setName] = useState(rule?.name ?? "");
  const [pattern, setPattern] = useState(rule?.match.to_pattern ?? "");
  const [target, setTarget] = useState(rule?.forward_to ?? "");
  const [priority, setPriority] = useState(String(rule?.priority ?? 0));
  const isNumber = /^-?\d{1,7}$/.test(priority);
  return (
    <FormDialog
      title={props.title}
      submit={t("Save")}
      createsSecret={rule === undefined}
      isDisabled={!isNumber}
      onClose={props.onClose}
      onSubmit={() =>
        props.onSubmit({
          name,
          match: { to_pattern: pattern },
          forward_to: target,
          priority: Number(priority),
        })
      }
    >
      <TextField label={t("Name")} value={name} onInput={setName} required />
      <TextField
        label={t("Recipients")}
        value={pattern}
        onInput={setPattern}
        isMono
        required
        placeholder="support@example.org"
        hint={t("* stands for any characters; tags such as support+42@ match too.")}
      />
      <TextField
        label={t("Target")}
        value={target}
        onInput={setTarget}
        isMono
        required
        placeholder="https://app.example.org/mail"
        hint={t("The mail is posted to it as JSON, signed.")}
      />
      <TextField
        label={t("Priority")}
        value={priority}
        onInput={setPriority}
        type="number"
        error={isNumber ? undefined : t("A whole number")}
        hint={t("The rule with the highest priority that matches gets the mail.")}
      />
    </FormDialog>
  );
}
